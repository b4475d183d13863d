"""The time to ready: its stages, and its instructions, which do not grow with RAM.

Counted in instructions (ACCEL=icount: one takes a nanosecond of the guest's clock), because times under emulation depend on the host.
"""

import re
from dataclasses import replace

import pytest
from guest import run
from machine import Machine
from records import values_of as records

SECONDS = 180
STAGES = ("early", "memory", "map", "firmware", "cpus", "mm", "program")
COUNTED = Machine("pvh", 1, "4G", accel="icount", cmdline="test=kernel.string.memmove_overlaps")
MICROVM = replace(COUNTED, firmware="microvm", mem="512M")
PER_GIB = 32  # instructions: clearing a struct gib takes 14, marking it 5, an entry of the direct map 6, clearing its table 2
MORE_WITH_RAM = 0.1
# What 15 ms of emulation on the 2-core host are in instructions. The fastest boots of this machine took 14.5 ms with 1.265 million, of which
# 1 million are the wait of 1 ms for the clock, and before start-up was shortened 27.3 ms with 12.12 million, 10 million of them waits.
# Besides the waits these are 1.86 million more in 3.8 ms, 490 a microsecond, so 0.5 ms are room for 0.24 million.
MICROVM_INSTRUCTIONS = 1_500_000


def boot(machine, kernel):
    outcome = run(machine, kernel, SECONDS).ended()
    return records(outcome.text, "boot")[0], outcome


@pytest.mark.parametrize("machine", [replace(COUNTED, accel="tcg", cpus=4), MICROVM], ids=["pvh", "microvm"])
def test_stages_are_on_one_line_and_add_up(kernel, machine):
    record, outcome = boot(machine, kernel)
    assert [key[:-3] for key in record if key[:-3] in STAGES] == list(STAGES), record
    assert sum(record[f"{stage}_ns"] for stage in STAGES) == record["ns_to_ready"]
    assert all(record[f"{stage}_ns"] > 0 for stage in STAGES), record
    line = re.search(r"^  ready    ([\d.]+) ms after entry: (.*)$", outcome.text, re.M)
    shown = dict(part.split() for part in line[2].split(" + "))
    assert list(shown) == list(STAGES)
    for name, ms in (*shown.items(), ("ready", line[1])):
        ns = record["ns_to_ready" if name == "ready" else f"{name}_ns"]
        assert ms == f"{ns // 1_000_000}.{ns // 1000 % 1000:03}", (name, ns)


@pytest.mark.parametrize("cpus", [1, 4, pytest.param(32, marks=pytest.mark.proof)])
def test_instructions_do_not_grow_with_ram(kernel, cpus):
    """4 TiB beside 4 GiB: all of it within 10%, and so many instructions for each further GiB."""
    small, large = (boot(replace(COUNTED, cpus=cpus, mem=mem), kernel)[0] for mem in ("4G", "4T"))
    assert large["ns_to_ready"] <= small["ns_to_ready"] * (1 + MORE_WITH_RAM), (small, large)
    # the other stages wait for clocks and CPUs
    work = [sum(record[f"{stage}_ns"] for stage in ("memory", "map", "firmware", "mm", "program")) for record in (small, large)]
    gib = (large["ram_bytes"] - small["ram_bytes"]) >> 30
    assert 0 < work[1] - work[0] <= gib * PER_GIB, f"{(work[1] - work[0]) / gib:.1f} instructions for each GiB"


def test_instructions_of_a_small_machine(kernel):
    record, _ = boot(MICROVM, kernel)
    assert 0 < record["ns_to_ready"] <= MICROVM_INSTRUCTIONS, record
