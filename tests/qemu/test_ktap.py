"""The KTAP reader: the texts that it must not accept. What it reports: test_run.py."""

import pytest
from ktap import Ktap

GOOD = """\
KTAP version 1
1..2
  KTAP version 1
  # Subtest: mm.buddy
  1..3
[    0.123456] a log line between
  # time_ns 1200
  ok 1 merge
  # mm.buddy.split: mm/buddy_test.c:40: order is 3, want is 2
  not ok 2 split
  ok 3 far # SKIP needs 2 nodes
# mm.buddy: pass:1 fail:1 skip:1
not ok 1 mm.buddy
  KTAP version 1
  # Subtest: kernel.format
  1..1
  ok 1 widths
ok 2 kernel.format
"""


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
