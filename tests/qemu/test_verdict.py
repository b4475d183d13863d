"""The judge of runs must distinguish every bad end from a pass. The guests are shell scripts here."""

import stat

import pytest
from guest import Guest
from machine import Machine
from verdict import Outcome, judge, program_status

BEGIN = "ASHLAR-BEGIN"
PASS = "ASHLAR-END verdict=pass code=0x10"


@pytest.mark.parametrize("begin", [BEGIN, "Booting from ROM.." + BEGIN])  # the firmware's line is unfinished
def test_pass(begin):
    assert judge([begin, "hello", PASS], 33) == ("pass", "")


def test_the_status_of_a_program():
    assert program_status([BEGIN, PASS]) is None
    lines = [BEGIN, "ASHLAR-END verdict=fail code=0x11 status=3"]
    assert judge(lines, 35) == ("fail", "") and program_status(lines) == 3


@pytest.mark.parametrize("lines, status, word", [
    ([], 0, "never began"),
    ([BEGIN, "a"], 0, "died"),
    ([BEGIN, "a", BEGIN, PASS], 33, "rebooted"),
    ([BEGIN, PASS], 0, "does not"),
    ([BEGIN, PASS], 35, "does not"),
    ([BEGIN, PASS], -11, "does not"),
    ([BEGIN, "ASHLAR-END verdict=pass code=0x11"], 33, "impossible"),
    ([BEGIN, "ASHLAR-END verdict=fine code=0x10"], 33, "impossible"),
    ([BEGIN, PASS, PASS], 33, "2 end markers"),
    ([BEGIN, PASS + " and more"], 33, "died"),
    ([BEGIN, PASS + " status=x"], 33, "died"),
])  # fmt: skip
def test_not_a_verdict(lines, status, word):
    assert word in judge(lines, status)[1]


def test_a_report_names_the_cases_that_failed_long_before_the_end():
    lines = ["  # a.b.c: tests/kernel/b_test.c:7: 1, expected 2", "  not ok 3 c", "not ok 1 a.b", *map(str, range(100))]
    report = Outcome(Machine("pvh"), "fail", lines=lines).report()
    assert all(report.count(line) == 1 for line in lines[:2]) and "| 99" in report and "| 50" not in report


@pytest.fixture
def script(tmp_path):
    def make(text):
        path = tmp_path / "qemu"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return Machine("pvh", qemu=str(path))

    return make


def finish(machine, seconds=20):
    with Guest(machine, "no-kernel") as guest:
        return guest.finish(seconds)


def test_a_guest_that_hangs(script):
    outcome = finish(script(f"echo {BEGIN}; echo so far; printf unfinished; exec sleep 3600"), seconds=1.5)
    assert "hung: silent" in outcome.problem
    assert "so far" in outcome.report() and "unfinished" in outcome.report()


def test_a_guest_that_is_slow(script):
    outcome = finish(script(f"echo {BEGIN}; for i in 1 2 3 4 5; do sleep 0.7; echo $i; done; echo {PASS}; exit 33"), seconds=3)
    assert (outcome.verdict, outcome.problem) == ("pass", "") and outcome.seconds > 3


def test_a_guest_that_never_stops_printing(script):
    outcome = finish(script(f"echo {BEGIN}; while sleep 0.1; do echo more; done"), seconds=0.6)
    assert "hung: not finished" in outcome.problem


def test_a_guest_that_dies(script):
    assert "died" in finish(script(f"echo {BEGIN}; kill -9 $$")).problem


def test_escapes_do_not_hide_the_markers(script):
    outcome = finish(script(f"printf '\\033c\\033[2J{BEGIN}\\r\\n\\033[0m{PASS}\\r\\n'; exit 33"))
    assert outcome.problem == ""
