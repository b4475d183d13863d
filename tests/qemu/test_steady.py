"""Lazy start-up costs nothing later. The test compares the allocator's rows with memmap=lazy and memmap=parallel, counted in
instructions."""

from guest import run
from machine import Machine
from test_payload import records

SECONDS = 90
NOISE = 0.01  # the same instructions, except for the effect of the places of blocks and frames


def rows(kernel, mode):
    outcome = run(Machine("pvh", 1, "1G", accel="icount", cmdline=f"memmap={mode} bench=steady"), kernel, SECONDS)
    assert (outcome.verdict, outcome.problem) == ("pass", ""), outcome.report()
    found = records(outcome.text, "alloc")
    assert {r["style"] for r in found} == {"on-demand" if mode == "lazy" else "mapped"}, outcome.report()
    return {(r["test"], r["op"]): r["ns"] / r["operations"] for r in found}


def test_lazy_is_no_slower(kernel):
    lazy, parallel = rows(kernel, "lazy"), rows(kernel, "parallel")
    assert len(lazy) == 6 and lazy.keys() == parallel.keys()
    for row, instructions in lazy.items():
        assert 0 < instructions <= parallel[row] * (1 + NOISE), f"{row}: {instructions}, mapped {parallel[row]}"
