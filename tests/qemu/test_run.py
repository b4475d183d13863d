"""tests/run: the same cases and the same report over a serial line. The line is a pty with QEMU behind it."""

import json
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import patience
import pytest
import qr
from machine import ROOT, Machine, command

RUN = [sys.executable, str(ROOT / "tests/run")]


def drive(*args):
    return patience.run([*RUN, *map(str, args)], 120)


@pytest.fixture
def serial(kernel, tmp_path):
    children = []

    def start(cmdline):
        argv = command(Machine("pvh", 2, "256M", cmdline=cmdline, serial=("-serial", "pty")), kernel)
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        children.append(child)
        return re.search(r"redirected to (\S+)", child.stdout.readline())[1]

    yield start
    for child in children:
        child.kill()
        child.wait()


def test_cases_over_a_serial_line(serial, tmp_path):
    device = serial("monitor")
    junit, record = tmp_path / "junit.xml", tmp_path / "console"
    done = drive("--serial", device, "--junit", junit, "--record", record, "kernel.words,kernel.string.*")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^ok +\d+\.\d{3} ms  kernel.words.blanks_and_quotes_separate_words$", done.stdout, re.M)
    suite = ElementTree.parse(junit).getroot()
    assert int(suite.get("tests")) == len(suite) > 4 and suite.get("failures") == suite.get("errors") == "0"
    assert all(float(case.get("time")) > 0 for case in suite)
    assert "# Subtest: kernel.words" in record.read_text(errors="replace")
    nothing = drive("--serial", device, "no.such.case")
    assert nothing.returncode == 1 and ("no plan" in nothing.stdout or "0 passed" in nothing.stdout)


def test_nobody_at_the_other_end(tmp_path):
    done = drive("--serial", "/dev/null", "--wait", "1")
    assert done.returncode == 2 and "no monitor answers" in done.stderr
    done = drive("--serial", tmp_path / "missing")
    assert done.returncode == 2 and "No such file" in done.stderr


FAILING = "noise \x1b[2J\xff\n" + Path(__file__).with_name("one-failure.ktap").read_text(encoding="utf-8")


def test_a_failing_case_says_how_to_run_just_it(tmp_path):
    console, junit = tmp_path / "console", tmp_path / "junit.xml"
    console.write_bytes(("BENCH own ns=5\n" + FAILING).replace("\n", "\r\n").encode("latin-1"))
    done = drive("--console", console, "--junit", junit, "--json", tmp_path / "json")
    assert done.returncode == 1
    assert "make run CMDLINE='test=mm.x.bad'" in done.stdout and "order is 3, want is 2" in done.stdout
    assert "1 passed, 1 failed, 1 skipped" in done.stdout
    suite = ElementTree.parse(junit).getroot()
    assert [len(case) for case in suite] == [0, 1, 1] and suite.find("testcase/failure").text.strip()
    *cases, record, end = map(json.loads, (tmp_path / "json").read_text().splitlines())
    assert [(case["case"], case["outcome"]) for case in cases] == [("mm.x.good", "passed"), ("mm.x.bad", "failed"), ("mm.x.none", "skipped")]
    assert cases[0]["ns"] == 1500000 and (record["record.kind"], record["ns"]) == ("own", 5)
    assert end == {"verdict": "fail", "problems": ""}


def test_a_console_that_ends_in_the_middle_is_no_pass(tmp_path):
    console = tmp_path / "console"
    console.write_text(FAILING[: FAILING.index("  # mm.x.bad")])
    done = drive("--console", console, "--junit", tmp_path / "junit.xml")
    assert done.returncode == 1 and "ended inside suite mm.x" in done.stdout
    assert ElementTree.parse(tmp_path / "junit.xml").getroot().get("errors") == "1"


@pytest.mark.parametrize("end, says", [(None, "1 passed, 1 failed, 1 skipped"), (6, "silent for 1 s after mm.x.good")])
def test_a_machine_that_runs_the_cases_by_itself(end, says):
    """--listen types nothing. If a machine falls silent, the last case that it finished is named."""
    master, slave = pty.openpty()
    text = "".join(FAILING.splitlines(keepends=True)[: end and end + 2])
    child = subprocess.Popen([*RUN, "--serial", os.ttyname(slave), "--listen", "--case-seconds", "1"], stdout=subprocess.PIPE, text=True)
    time.sleep(0.5)
    os.write(master, text.replace("\n", "\r\n").encode("latin-1"))
    out, _ = child.communicate(timeout=600)
    os.close(master)
    os.close(slave)
    assert child.returncode == 1 and says in out


def codes_of(text):
    pieces = [text[at : at + 40] for at in range(0, len(text), 40)]
    return [b"ASHLAR-QR %d/%d %s\n" % (n, len(pieces), qr.sum_of(text)) + piece for n, piece in enumerate(pieces, 1)]


def test_codes_are_joined_in_any_order_or_it_is_said_why_not():
    text = FAILING.encode("latin-1")
    codes = codes_of(text)
    assert len(codes) > 6 and qr.join([b"", *codes[::-1], b"a code of others", *codes[:3]]) == text
    other = codes_of(text.replace(b"pass", b"skip"))
    wrong = codes[:2] + [codes[2][:-1] + b"?"] + codes[3:]
    for bad, why in ((codes[:4] + codes[5:], "no picture of 5$"), (codes + other[:1], "of 2 runs"), (wrong, "misread"), ([b""], "no code")):
        with pytest.raises(qr.Unreadable, match=why):
            qr.join(bad)


def test_pictures_without_a_code_are_no_pass(tmp_path):
    (tmp_path / "notes").write_text("no picture")
    (tmp_path / "folder").mkdir()
    done = drive("--console", tmp_path)
    assert done.returncode == 1 and "there is no code of Ashlar in the pictures" in done.stdout
