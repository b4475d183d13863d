"""The KTAP reader: the cases that it reports, and the texts that it must not accept."""

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


def read(text):
    ktap = Ktap()
    for line in text.splitlines():
        ktap.feed(line)
    return ktap


def without(line):
    return read(GOOD.replace(line + "\n", "", 1))


def test_cases_and_outcomes():
    ktap = read(GOOD)
    assert [(c.name, c.outcome) for c in ktap.cases] == [
        ("mm.buddy.merge", "passed"),
        ("mm.buddy.split", "failed"),
        ("mm.buddy.far", "skipped"),
        ("kernel.format.widths", "passed"),
    ]
    assert ktap.problems() == []


def test_a_failure_carries_its_diagnostics():
    assert "order is 3" in read(GOOD).cases[1].detail


def test_a_skip_carries_its_reason():
    assert read(GOOD).cases[2].detail == "needs 2 nodes"


def test_time_belongs_to_its_case():
    assert [c.ns for c in read(GOOD).cases] == [1200, 0, 0, 0]


def test_nothing_ran():
    assert read("hello\n").problems() == ["no plan: no test ran"]


def test_death_inside_a_suite():
    assert read(GOOD[: GOOD.index("  ok 3")]).problems() == ["ended inside suite mm.buddy, after 2 of 3 cases"]


def test_death_between_suites():
    assert read(GOOD[: GOOD.index("not ok 1 mm")] + "not ok 1 mm.buddy\n").problems() == ["1 of 2 suites have a result"]


def test_a_lost_result_is_noticed():
    assert without("  ok 1 merge").problems()


def test_a_lost_failure_is_noticed():
    assert without("  not ok 2 split").problems()


def test_a_suite_that_hides_a_failure_is_noticed():
    assert read(GOOD.replace("not ok 1 mm.buddy", "ok 1 mm.buddy")).problems()
