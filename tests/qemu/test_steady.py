"""Lazy start-up costs nothing later. The test compares the allocator's operations with memmap=lazy and memmap=parallel, counted in
instructions: bench=counts counts them once the sections that they need are open and the blocks are split."""

import re

from guest import run
from machine import Machine
from records import values_of as records

SECONDS = 180
NOISE = 0.01  # the same instructions, except for the effect of the places of blocks and frames


def rows(kernel, mode):
    outcome = run(Machine("pvh", 1, "4G", accel="icount", cmdline=f"memmap={mode} bench=counts"), kernel, SECONDS).ended()
    assert records(outcome.text, "boot")[0]["memmap"] == mode, outcome.report()
    return {r["op"]: r["ns"] / r["times"] for r in records(outcome.text, "counts") if re.match(r"page-\d", r["op"])}


def test_lazy_is_no_slower(kernel):
    lazy, parallel = rows(kernel, "lazy"), rows(kernel, "parallel")
    assert len(lazy) > 20 and lazy.keys() == parallel.keys()
    for row, instructions in lazy.items():
        assert 0 < instructions <= parallel[row] * (1 + NOISE), f"{row}: {instructions}, mapped {parallel[row]}"
