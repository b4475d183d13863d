"""Compares the kernel's nodes, CPU by CPU and range by range, with those that QEMU was given."""

from dataclasses import replace

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
