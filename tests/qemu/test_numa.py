"""Compares the kernel's nodes, CPU by CPU and range by range, with those that QEMU was given."""

import re
from dataclasses import replace

import pytest
from guest import run
from machine import Machine, node_shares

LOW_LIMIT, LOW, HIGH = 0xB0000000, 0x80000000, 1 << 32  # q35: RAM of LOW_LIMIT bytes and more is cut at LOW, the rest lies from HIGH on
FIRMWARE = 2 << 20  # of all RAM, at most: tables of SeaBIOS, and the hole below 1 MiB

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


def apic_id(machine, index):
    """Sockets are numbered from a power of two on (SDM vol. 3A, 9.9.1)."""
    cores = re.search(r"cores=(\d+)", " ".join(machine.extra))
    if not cores:
        return index
    return index // int(cores[1]) << (int(cores[1]) - 1).bit_length() | index % int(cores[1])


def ranges(nodes):
    """The ranges of each node's RAM, which lie one after the other, except for the hole below 4 GiB."""
    total, at, found = sum(size for _, size in nodes.values()), 0, {}
    low = LOW if total >= LOW_LIMIT else total
    for node, (_, size) in sorted(nodes.items()):
        below = [(at, min(at + size, low))] if size and at < low else []
        above = [(HIGH + max(at, low) - low, HIGH + at + size - low)] if size and at + size > low else []
        found[node], at = below + above, at + size
    return found


@pytest.mark.parametrize("machine", MACHINES, ids=name)
def test_cpus_and_memory_belong_to_the_nodes_they_were_given_to(machine, kernel):
    machine = replace(machine, cmdline='run="cpus; mem nodes"')
    nodes = {node: (range(*cpus), size) for node, (size, cpus) in enumerate(node_shares(machine))}
    assert len(nodes) == machine.nodes and sum(len(cpus) for cpus, _ in nodes.values()) == machine.cpus
    outcome = run(machine, kernel).ended()

    rows = re.findall(r"^ +(\d+) +(\d+) (?:this one|idle|busy) .* (\d+)$", outcome.text, re.M)
    said = {int(apic): int(node) for _, node, apic in rows}
    told = {apic_id(machine, cpu): node for node, (cpus, _) in nodes.items() for cpu in cpus}
    assert len(rows) == machine.cpus and said == told, outcome.text

    node, ram = None, {n: [] for n in nodes}
    for line in outcome.lines:
        heading, piece = re.match(r"  node (\d+): \d+ MiB,", line), re.match(r"    RAM 0x(\w+) to 0x(\w+)", line)
        node = int(heading[1]) if heading else node
        if piece:
            ram[node].append((int(piece[1], 16), int(piece[2], 16)))
    for n, wanted in ranges(nodes).items():
        outside = [(s, e) for s, e in ram[n] if not any(start <= s and e <= end for start, end in wanted)]
        assert not outside, f"node {n} has {outside}, QEMU gave it {wanted}\n{outcome.text}"
    missing = sum(size for _, size in nodes.values()) - sum(end - start for pieces in ram.values() for start, end in pieces)
    assert 0 <= missing <= FIRMWARE, f"{missing} bytes of RAM belong to no node\n{outcome.text}"
