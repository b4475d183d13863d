"""Counts that gate: no operation costs more than tests/bench/counts says, and a message names the functions that grew."""

import copy
import functools
import re
from types import SimpleNamespace

import callgrind
import counts
import figures
import pytest
from conftest import skip_machine
from figures import Cost, Figures
from machine import ROOT

TOOLS, ACCEPTED = counts.load()

# ---- the gate ----


@pytest.fixture(scope="module")
def hosted(build):
    """A function that measures the hosted part when it is first called: half a minute."""
    return functools.cache(lambda: counts.measure_hosted(build))


def judge(part, build, risen):
    """Fail if a figure of the part rose; then, if other tools made some of the figures, skip, because those were not compared."""
    assert not risen, "\n".join([*risen, 'If that is the price of something: make counts WHAT="..."'])
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


LINUX = {"off": ("6.1 off", "6.12 off"), "unbatched": ("6.1 on",), "batched": ("6.12 on",)}  # what a mode stands for


def test_no_baseline_of_the_hvo_series_is_dearer_than_linux():
    """A slow baseline would flatter ours. Instructions a page, of both by icount: tests/report/measurements/hvo.txt has Linux's."""
    text = (ROOT / "tests/report/measurements/hvo.txt").read_text(encoding="utf-8")
    linux = {name: figures_of for name, *figures_of in re.findall(r"^  Linux ([\d.]+ \w+) +([\d,]+) +([\d,]+)$", text, re.M)}
    for mode, names in LINUX.items():
        for step, number in (("grow", 0), ("shrink", 1)):
            budget = min(int(linux[name][number].replace(",", "")) for name in names)
            assert ACCEPTED[f"pool-2M-{mode}.{step}"].insns <= budget, (mode, step, budget)


# ---- the comparison ----

WAS = {"take": Figures(100, 0, 0, 2, 1, {"take": Cost(60, 2), "spin_lock": Cost(40, 0, 1)}, times=100), "flush": Figures(1000, 1, 3)}


def changed(op, **more):
    now = copy.deepcopy(WAS)
    for name, value in more.items():
        setattr(now[op], name, value)
    return now


def test_smaller_figures_pass():
    assert figures.complaints(WAS, changed("take", insns=50)) == []
    assert figures.falls(WAS, changed("take", insns=50)) == ["take: 100 -> 50 instructions"]


@pytest.mark.parametrize("kind", figures.KINDS)
def test_a_rise_beyond_the_bound_is_noticed(kind):
    was = changed("take", **{kind: 100})
    assert figures.complaints(was, changed("take", **{kind: 101.9})) == []
    found = figures.complaints(was, changed("take", **{kind: 102.1}))
    assert len(found) == 1 and found[0].startswith(f"take: 100 -> 102.1 (+2.1%) {figures.UNIT[kind]}"), found


def test_the_functions_that_grew_are_named():
    grown = {"take": Cost(60, 2), "spin_lock": Cost(44, 0, 2), "once": Cost(0.9)}
    assert figures.complaints(WAS, changed("take", insns=104, functions=grown)) == ["take: 100 -> 104 (+4.0%) instructions: spin_lock() +4"]
    assert figures.complaints(WAS, changed("take", locked=2, functions=grown)) == ["take: 1 -> 2 (+100.0%) locked instructions: spin_lock() +1"]
    where = figures.complaints(WAS, changed("take", insns=104))
    assert len(where) == 1 and "look in arch/x86_64" in where[0]


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


# ---- profiles ----

PROFILE = """events: Ir Dr Dw I1mr D1mr D1mw
summary: 1029 22 528 9 10 75
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
    for torn in (PROFILE.replace("events", "event"), PROFILE.replace("summary", "s")):
        with pytest.raises(callgrind.Failed):
            callgrind.parse(torn)
