"""What boot takes of the host does not depend on the amount of RAM (time: test_ready.py), and nodes are used as the firmware describes them.

The 4 TiB guest is larger than any host. The host backs only memory that the kernel touches, and the tests measure this memory.
"""

import subprocess
import time
from dataclasses import replace

from guest import Guest, process_kib, run
from machine import Machine, command
from records import values_of as records

SECONDS = 90
LARGE = Machine("pvh", 8, "4T", cmdline="end=halt test=kernel.string.*")  # the test looks at the machine while it runs
BEYOND = Machine("pvh", 8, "2T", nodes=8, uneven=True)
MIB = 1 << 10  # in KiB


def held_halted(machine, kernel):
    """The memory that the same QEMU holds before the first instruction, after it has stopped growing."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    child = subprocess.Popen([*command(replace(machine, serial=("-serial", "none")), kernel), "-S"], **quiet)
    try:
        held, before = 0, -1
        for _ in range(100):
            time.sleep(0.2)
            before, held = held, process_kib(child.pid, "VmRSS")
            if held == before and held > 10 * MIB:
                return held
        raise AssertionError(f"QEMU never settled: {before} KiB, then {held}")
    finally:
        child.kill()
        child.wait()


def test_host_memory_at_ready(kernel):
    with Guest(LARGE, kernel) as guest:
        assert guest.wait_for("^BENCH boot ", SECONDS), f"never ready: {guest.lines[-40:]}"
        most, halted = process_kib(guest.child.pid, "VmHWM"), held_halted(LARGE, kernel)
    assert most - halted <= 256 * MIB, f"{most / MIB:.0f} MiB at ready, {halted / MIB:.0f} MiB halted at entry"


def test_uneven_nodes_beyond_1_tib(kernel):
    outcome = run(replace(BEYOND, cmdline="test=mm.numa.*,mm.memmap_open.*"), kernel).ended()
    boot_record = records(outcome.text, "boot")[0]
    assert boot_record["nodes"] == BEYOND.nodes and boot_record["ram_bytes"] > BEYOND.ram_bytes * 0.99
