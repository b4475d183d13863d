"""What boot takes of the host does not depend on the amount of RAM (time: test_ready.py), and nodes are used as the firmware describes them.

The 4 TiB guest is larger than any host. The host backs only memory that the kernel touches, and the tests measure this memory.
"""

import re
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from guest import Guest, run
from machine import Machine, command
from records import values_of as records

SECONDS = 90
LARGE = Machine("pvh", 8, "4T", cmdline="end=halt test=kernel.string.*")  # the test looks at the machine while it runs
UNEVEN = Machine("pvh", 32, "12G", nodes=8, uneven=True)
BEYOND = Machine("pvh", 8, "2T", nodes=8, uneven=True)
PAGES = 1000
MIB = 1 << 20


def process_bytes(pid, field):
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    return int(re.search(rf"^{field}:\s*(\d+) kB$", text, re.M)[1]) * 1024


def held_when_ready(machine, kernel):
    """The most bytes that QEMU has held when the machine says it is ready."""
    with Guest(machine, kernel) as guest:
        assert guest.wait_for("^BENCH boot ", SECONDS), f"never ready: {guest.lines[-40:]}"
        return process_bytes(guest.child.pid, "VmHWM")


def halted_bytes(machine, kernel):
    """The memory that the same QEMU holds before the first instruction, after it has stopped growing."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    argv = command(machine, kernel)
    argv[argv.index("-nographic") : argv.index("-nographic") + 1] = ["-display", "none", "-serial", "none"]
    child = subprocess.Popen(argv + ["-monitor", "none", "-S"], **quiet)
    try:
        held, before = 0, -1
        for _ in range(100):
            time.sleep(0.2)
            before, held = held, process_bytes(child.pid, "VmRSS")
            if held == before and held > 10 * MIB:
                return held
        raise AssertionError(f"QEMU never settled: {before} bytes, then {held}")
    finally:
        child.kill()
        child.wait()


def test_host_memory_at_ready(kernel):
    most, halted = held_when_ready(LARGE, kernel), halted_bytes(LARGE, kernel)
    assert most - halted <= 256 * MIB, f"{most / MIB:.0f} MiB at ready, {halted / MIB:.0f} MiB halted at entry"


@pytest.mark.proof
def test_a_thousand_huge_pages_of_4_tib(kernel):
    outcome = run(replace(LARGE, cmdline=f'bench="hvo pages={PAGES}"'), kernel).ended()
    legs = [r for r in records(outcome.text, "hvo") if r["mode"] == "on" and r["op"] == "alloc" and r["size"] == "2M"]
    assert legs and all(leg["done"] == leg["pages"] == PAGES for leg in legs), outcome.report()


@pytest.mark.parametrize("bench, words", [pytest.param("memmap", "", marks=pytest.mark.proof), ("hvo", " pages=1024")])
def test_uneven_nodes(kernel, bench, words):
    """The tables are whole on a machine with a node without memory, a node without CPUs, and the distances of a ring."""
    outcome = run(replace(UNEVEN, cmdline=f'bench="{bench}{words}"'), kernel).ended()
    found = records(outcome.text, bench)
    assert found and all(record["ns"] > 0 for record in found), outcome.report()
    assert records(outcome.text, "boot")[0]["nodes"] == UNEVEN.nodes
    if bench == "hvo":
        assert all(record["done"] == record["pages"] > 0 for record in found), outcome.report()


def test_uneven_nodes_beyond_1_tib(kernel):
    outcome = run(replace(BEYOND, cmdline="test=mm.numa.*,mm.memmap_open.*"), kernel).ended()
    boot_record = records(outcome.text, "boot")[0]
    assert boot_record["nodes"] == BEYOND.nodes and boot_record["ram_bytes"] > BEYOND.ram_bytes * 0.99
