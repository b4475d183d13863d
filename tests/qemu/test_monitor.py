"""Types at the monitor over a pty: every command, editing, completion, Ctrl-C, any bytes; and runs the same from the command line."""

import os
import random
import re
from pathlib import Path

import pytest
import texts
from guest import Session, run
from machine import Machine

COMMANDS = texts.rows(Path(__file__).with_name("monitor-answers.txt"), r"(\w.*)\n    (.*)")
WAYS_OUT = {"poweroff", "reboot"}


@pytest.fixture
def session(kernel):
    with Session(Machine("pvh", 4, "6G", cmdline="monitor debug.page_owner=on"), kernel) as opened:
        yield opened


def test_every_command_answers(session):
    known = re.findall(r"^  (\w+) +\S", session.command("help"), re.M)
    typed = {part.split()[0] for line, _ in COMMANDS for part in line.split(";")}
    assert set(known) - typed - WAYS_OUT == set(), "these commands have no line in COMMANDS"
    for line, answer in COMMANDS:
        said = session.command(line, 120)
        assert re.search(answer, said), f"{line!r} says:\n{said}"


def test_editing_history_and_completion(session):
    session.send("mem zone\x1b[D\x1b[D\x1b[Dx\x1b[D\x1b[3~\x1b[H\x05s\r")  # an x typed and deleted, start, end
    assert "zone 0: frames" in (said := session.prompt()) and "\a" not in said
    session.send("\x1b[A\x15me\x1b[B\x15\x1b[A\r")  # up, killed, typed, down, killed, up again
    assert "zone 0: frames" in session.prompt()
    session.send("hel\tpoo\t\r")
    assert "huge page pools" in session.prompt()
    session.send("po\t\t")
    session.expect(r"\n +pool +poweroff")
    session.prompt()
    session.send("o\t\r")  # "po" stands there again: now only pool is possible
    assert "2M: 0 pages" in session.prompt()
    session.send("set hvo=b\t; set hvo\r")
    assert re.search(r"hvo +batched ", session.prompt())
    session.send("mem and much more\x03")
    session.prompt()
    session.send("test kernel.wor\tbl\t\r")
    assert "pass:1 fail:0" in session.prompt()


def test_ctrl_c_stops_what_runs(session):
    session.send("test kernel.*,mm.block.*\r")
    session.expect(r"  ok 3 ")
    session.send("\x03")
    assert "Bail out! stopped by Ctrl-C" in session.prompt(120)
    session.send("pool 2M 8; bench hvo pages=64 source=all; pool\r")
    session.expect(r"off +grow")
    session.send("\x03")
    assert "the remaining commands were stopped by Ctrl-C" in session.prompt(120)
    assert "every frame accounted for" in session.command("pool 2M 0; mem check")


# The line to type, the output after which to press Ctrl-C, and the output that only a complete run would print.
STOPPED = [
    ("bench memmap", r"ways in turn", r"beside a plain clear|what=all"),
    ("bench clear", r"size insn", r"size=1G"),
    ("bench pcp", r"Batches of", r"ours : before"),
    ("bench fault bytes=64M", r" 2M +erms +4K +1 ", r"cpus=[248] .* run=[2-7] "),
    ("bench contig memory=fresh", r"memory fresh", r"mode=index"),
]


def test_ctrl_c_stops_benchmarks_between_rows(session):
    """Stopped benchmarks give back the memory that they hold, restore the switches that they set, and record the figures that they
    measured."""
    for line, when, rest in STOPPED:
        session.send(line + "\r")
        session.expect(when)
        session.send("\x03")
        said = session.prompt(60)
        assert not re.search(rest, said) and "failed" not in said, f"{line}:\n{said}"
    assert "every frame accounted for" in session.command("mem check", 60)


def test_ctrl_c_during_a_grow_of_100000_pages(kernel):
    """One flush round for each page takes long enough to be stopped. The part that was grown until then is a sound pool."""
    with Session(Machine("pvh", 8, "256G", cmdline="monitor hvo=unbatched"), kernel) as session:
        session.send("pool 2M grow 100000\r")
        session.expect(r"grow: \d+ of 100000 pages, \d+/s, \d+\.\d s left")
        session.send("\x03")
        said = session.prompt(60)
        assert re.search(r"stopped by Ctrl-C after \d+ of 100000 pages", said), said
        grown = int(re.search(r"grow 2M: (\d+) pages", said)[1])
        assert 0 < grown < 100000
        assert f"2M: {grown} pages, {grown} free, 0 in use" in session.command("pool 2M")
        assert "every frame accounted for" in session.command("mem check", 120)


def test_any_bytes(session):
    """No bytes from the line crash or hang the monitor. Line ends are left out, because they might run `poweroff`."""
    noise = random.Random(20261121)
    for _ in range(40):
        line = bytes(noise.choice([b for b in range(256) if b not in (1, 4, 10, 13)]) for _ in range(100))
        os.write(session.child.child_fd, line + b"\x03")  # 1 would talk to QEMU
    os.write(session.child.child_fd, b"\x03frob\xffni;cate \"3\r")
    session.expect(r'no command "frob')
    session.expect(r'unfinished quote in "3"')
    session.prompt()
    assert "= RAM" in session.command("mem")


def test_reboot_is_no_verdict(kernel):
    with Session(Machine("pvh", 1, "128M", cmdline="monitor"), kernel) as session:
        session.send("reboot\r")
        assert session.finish(120).status == 0  # -no-reboot: QEMU ends


def test_commands_from_the_command_line(kernel):
    outcome = run(Machine("pvh", 4, "3G", cmdline='run="pool 2M 64; pool 2M 0; bench hvo pages=64; mem check"'), kernel, 120).ended()
    assert "# totals pass:4 fail:0" in outcome.text and "BENCH hvo mode=on" in outcome.text


def test_a_failing_command_fails_an_unattended_run(kernel):
    outcome = run(Machine("pvh", 1, "128M", cmdline='run="mem; pool 2M 4000; mem check"'), kernel, 120).ended("fail")
    assert "# totals pass:2 fail:1" in outcome.text
