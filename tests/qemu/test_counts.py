"""Counts that gate: no operation costs more than tests/bench/counts says, and a message names the functions that grew."""

import copy
import functools
import sys
from types import SimpleNamespace

import pytest
from conftest import skip_machine
from machine import ROOT

sys.path.insert(0, str(ROOT / "tests/report"))

import counts  # noqa: E402
import figures  # noqa: E402
from figures import Cost, Figures  # noqa: E402

TOOLS, ACCEPTED = counts.load()

# ---- the gate ----


@pytest.fixture(scope="module")
def hosted(build):
    """A function that measures the hosted part when it is first called: half a minute."""
    return functools.cache(lambda: counts.measure_hosted(build))


def judge(part, build, risen):
    """Fail if a figure of the part rose; then, if other tools made some of the figures, skip, because those were not compared."""
    assert not risen, "\n".join([*risen, 'If that is the price of something: make counts REASON="..."'])
    if reason := counts.other_tools(part, TOOLS, counts.TOOLS_OF[part](build)):
        skip_machine(SimpleNamespace(name="counts"), reason)


def kinds_of(part, build):
    return counts.kinds_to_compare(part, TOOLS, counts.TOOLS_OF[part](build))


def test_no_operation_of_the_kernel_costs_more(build, hosted):
    kernel, kinds = counts.measure_kernel(build), kinds_of("kernel", build)
    risen = figures.complaints(ACCEPTED, kernel, kinds)
    if risen and (build / "host/native/ashlar-host").exists():  # its profile names the functions
        risen = figures.complaints(ACCEPTED, counts.joined(kernel, hosted()), kinds)
    judge("kernel", build, risen)


def test_no_operation_misses_or_locks_more(build, hosted):
    assert (build / "host/native/ashlar-host").exists(), "the hosted machine is not built: run make host-native"
    judge("hosted", build, figures.complaints(ACCEPTED, hosted(), kinds_of("hosted", build)))


# ---- the comparison ----

WAS = {
    "take": Figures(100, 0, 0, 2, 1, {"take": Cost(60, 2), "spin_lock": Cost(40, 0, 1)}, times=100),
    "flush": Figures(1000, 1, 3),
}


def changed(op, **more):
    """WAS with other figures of one operation."""
    now = copy.deepcopy(WAS)
    for name, value in more.items():
        setattr(now[op], name, value)
    return now


def test_equal_figures_and_smaller_ones_pass():
    assert figures.complaints(WAS, WAS) == [] and figures.falls(WAS, WAS) == []
    assert figures.complaints(WAS, changed("take", insns=50)) == []
    assert figures.falls(WAS, changed("take", insns=50)) == ["take: 100 -> 50 instructions"]


@pytest.mark.parametrize("kind", figures.KINDS)
def test_a_rise_beyond_the_bound_is_noticed(kind):
    was = changed("take", **{kind: 100})
    assert figures.complaints(was, changed("take", **{kind: 101.9})) == []
    found = figures.complaints(was, changed("take", **{kind: 102.1}))
    assert len(found) == 1 and found[0].startswith(f"take: 100 -> 102.1 (+2.1%) {figures.UNIT[kind]}"), found


def test_a_round_where_there_was_none_is_noticed():
    found = figures.complaints(WAS, changed("take", rounds=0.01))
    assert found == ["take: 0 -> 0.01 rounds"]


def test_the_functions_that_grew_are_named():
    grown = {"take": Cost(60, 2), "spin_lock": Cost(44, 0, 2), "once": Cost(0.9)}
    assert figures.complaints(WAS, changed("take", insns=104, functions=grown)) == ["take: 100 -> 104 (+4.0%) instructions: spin_lock() +4"]
    assert figures.complaints(WAS, changed("take", locked=2, functions=grown)) == ["take: 1 -> 2 (+100.0%) locked instructions: spin_lock() +1"]
    where = figures.complaints(WAS, changed("take", insns=104))
    assert len(where) == 1 and "look in arch/x86_64" in where[0]


def test_a_miss_more_in_a_whole_step_is_no_rise():
    assert figures.complaints(WAS, changed("take", misses=2.05)) == []
    assert len(figures.complaints(WAS, changed("take", misses=2.07))) == 1


def test_an_operation_that_only_one_side_knows_is_noticed():
    assert figures.complaints({"take": WAS["take"]}, WAS) == ["flush: has no figures yet"]
    assert figures.complaints(WAS, {"take": WAS["take"]}) == ["flush: was not measured"]
    assert figures.complaints(WAS, {"take": WAS["take"]}, ("misses", "locked")) == [], "a part that has no figures of it need not measure it"


# ---- the file ----


def test_the_file_keeps_what_was_measured():
    tools = {"kernel": "gcc 12; QEMU 7.2", "hosted": "gcc 12; valgrind 3.19"}
    kept_tools, kept = figures.parse(figures.format_file(("# head",), tools, WAS))
    assert kept_tools == tools and list(kept) == list(WAS)
    assert kept["flush"] == WAS["flush"]
    assert figures.complaints(kept, WAS) == [] and kept["take"].functions == WAS["take"].functions


def test_the_real_file_has_all_paths():
    assert len(ACCEPTED) >= 60 and set(TOOLS) == set(counts.TOOLS_OF)
    assert all(found.insns > 0 for found in ACCEPTED.values())
    assert sum(bool(found.functions) for found in ACCEPTED.values()) > 0.9 * len(ACCEPTED)


def test_figures_of_other_tools_are_compared_where_tools_make_no_difference():
    assert counts.kinds_to_compare("kernel", {"kernel": "gcc 12"}, "gcc 14") == ("rounds", "ipis")
    assert counts.kinds_to_compare("hosted", {"hosted": "gcc 12"}, "gcc 14") == ()
    assert "gcc 14" in counts.other_tools("kernel", {"kernel": "gcc 12"}, "gcc 14")
    assert counts.other_tools("kernel", {"kernel": "gcc 12"}, "gcc 12") == ""


def test_an_accepted_change_has_its_reason_in_the_log():
    note = counts.note_of(WAS, changed("flush", insns=1100), "Rounds are counted.")
    assert note == "- Rounds are counted. 1 of 2 operations: flush 1000 -> 1100 (+10.0%) instructions."
    log = counts.with_note(counts.with_note("# Changes\n", "- first"), note)
    assert log.startswith("# Changes\n\n## Counts\n") and log.endswith(f"{note}\n- first\n")


# ---- profiles ----

PROFILE = """events: Ir Dr Dw I1mr D1mr D1mw
fl=/any/folder/./mm/page/page_free.c
fn=page_free.part.0'2
0x10 5 1 1 0 1 2
0x14 5
calls=5 0x20
0x18 500 9 9 9 9 9
fl=/any/folder/tests/bench/counts_pages.c
fn=free_each
0x30 7 7 7
fl=/any/folder/arch/x86_64/clear/clear_insns.S
fn=clear_rep
0x40 512 0 512 0 0 64
"""


def test_a_profile_has_the_own_cost_of_the_functions_of_the_kernel():
    """Not those of the benchmark, not the functions that were called, and not the stores of clearing instructions."""
    assert counts.profile_of(PROFILE, {0x14}, {}) == {"page_free": Cost(10, 3, 5)}


def test_a_store_that_clears_is_no_instruction():
    record = {"times": "4", "ns": "4400", "stores": "2048", "rounds": "1", "ipis": "12"}
    assert counts.figures_of(record) == Figures(588, 0.25, 3)
