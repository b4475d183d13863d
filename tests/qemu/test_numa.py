"""Compares the kernel's nodes, CPU by CPU and range by range, with those that QEMU was given."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import truth
from guest import run
from machine import Machine, node_shares

MACHINES = (
    Machine("pvh", 8, "1G", nodes=2),
    Machine("pvh", 7, "1G", nodes=2),
    Machine("pvh", 7, "1000M", nodes=3),
    Machine("bios", 5, "5G", nodes=2),
    Machine("pvh", 13, "7G", nodes=5),
    Machine("pvh", 6, "512M", nodes=2, layout=(("256M", 6), ("256M", 0))),
    Machine("pvh", 7, "512M", nodes=2, layout=(("512M", 4), ("0M", 3))),
    Machine("pvh", 7, "512M", nodes=2, layout=(("0M", 2), ("512M", 5))),
    Machine("pvh", 6, "512M", nodes=2, extra=("-smp", "6,sockets=2,cores=3,threads=1")),  # APIC IDs 0 to 2 and 4 to 6
    Machine("pvh", 9, "768M", nodes=3, extra=("-smp", "9,sockets=3,cores=3,threads=1")),
)


def name(machine):
    return "-".join([machine.name] + [f"{size}+{cpus}" for size, cpus in machine.layout] + list(machine.extra[1:]))


@pytest.mark.parametrize("machine", MACHINES, ids=name)
def test_cpus_and_memory_belong_to_the_nodes_they_were_given_to(machine, kernel):
    shares = node_shares(machine)
    assert len(shares) == machine.nodes and sum(end - first for _, (first, end) in shares) == machine.cpus
    outcome = run(replace(machine, cmdline="test=mm.machine.it_says*"), kernel).ended()
    assert not truth.complaints(machine, outcome), "\n".join(truth.complaints(machine, outcome)) + "\n" + outcome.text


LOW, HIGH = (0, 2 << 30), (4 << 30, 6 << 30)


def said(cpus, *nodes):
    """A console on which a kernel says that it found these CPUs, on node 0, and the ranges of each node."""
    lines = [f"  {cpu:5} {0:5} {'idle':8} 1 1 1 {cpu:8}" for cpu in cpus]
    for node, pieces in enumerate(nodes):
        lines += [f"  node {node}: 1 MiB, and more", *(f"    RAM {start:#x} to {end:#x}" for start, end in pieces)]
    return SimpleNamespace(text="\n".join(lines), lines=lines)


def test_what_a_kernel_lost_is_noticed():
    machine = Machine("pvh", 2, "4G")
    assert not truth.complaints(machine, said((0, 1), [LOW, HIGH]))
    lost = (
        said((0,), [LOW, HIGH]), said((0, 0), [LOW, HIGH]), said((0, 2), [LOW, HIGH]), said((0, 1)), said((0, 1), [LOW], [HIGH]),
        said((0, 1), [LOW]), said((0, 1), [LOW, (HIGH[0], HIGH[1] - (2 << 20))]), said((0, 1), [LOW, (HIGH[0], HIGH[1] + 4096)]),
        said((0, 1), [LOW, LOW]), said((0, 1), [HIGH, (HIGH[0], HIGH[1] - 4096)]),
    )  # fmt: skip
    assert all(truth.complaints(machine, outcome) for outcome in lost)
