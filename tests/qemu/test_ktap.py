"""The KTAP reader: the texts that it must not accept. What it reports: test_run.py."""

from pathlib import Path

import pytest
from ktap import Ktap

GOOD = Path(__file__).with_name("two-suites.ktap").read_text(encoding="utf-8")
BAD = {
    "hello\n": "no plan: no test ran",
    GOOD[: GOOD.index("  ok 3")]: "ended inside suite mm.buddy, after 2 of 3 cases",
    GOOD[: GOOD.index("not ok 1 mm")] + "not ok 1 mm.buddy\n": "1 of 2 suites have a result",
    GOOD.replace("  ok 1 merge\n", ""): "split: numbered 2, expected 1",
    GOOD.replace("  not ok 2 split\n", ""): "far: numbered 3, expected 2",
    GOOD.replace("not ok 1 mm.buddy", "ok 1 mm.buddy"): "mm.buddy",
}


@pytest.mark.parametrize("text", BAD, ids=["nothing", "inside", "between", "lost", "lost-failure", "hidden"])
def test_what_is_no_whole_run_is_noticed(text):
    ktap = Ktap()
    for line in text.splitlines():
        ktap.feed(line)
    assert any(BAD[text] in problem for problem in ktap.problems())


@pytest.mark.parametrize("text, problems", [("1..2\nok 1 a\n  not ok 3 x\nnot ok 2 b\n", 0), ("1..2\nok 2 b\n", 1), ("1..2\nok 1 a\n", 1)])
def test_suites_alone(text, problems):
    ktap = Ktap(suites_only=True)
    for line in text.splitlines():
        ktap.feed(line)
    assert len(ktap.problems()) == problems
    found = [(case.name, case.outcome, case.detail) for case in ktap.cases]
    assert problems or found == [("a", "passed", ""), ("b", "failed", "  not ok 3 x")]
