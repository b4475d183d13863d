"""What a machine is by the words that made it (machine.py), and what its kernel says it found: the lines of `cpus` and of `mem nodes`."""

import re

from machine import node_shares

HIGH = 1 << 32  # RAM that does not fit below lies from here on
AMD_LIMIT, AMD_HIGH = 0xFD00000000, 1 << 40  # or, where it would reach HyperTransport's addresses, from 1 TiB on


def kept_by_firmware(machine):
    """Bytes of RAM, at most: tables of SeaBIOS and the hole below 1 MiB, or what OVMF keeps, with a stack of 32 KiB for each CPU."""
    return (8 << 20) + machine.cpus * (32 << 10) if machine.firmware in ("uefi", "efi") else 1 << 20


def below_4g(machine):
    """Bytes of RAM below 4 GiB. q35 cuts RAM of 0xB0000000 bytes and more at 2 GiB, microvm at 3."""
    limit, low = (0xC0000000, 0xC0000000) if machine.firmware == "microvm" else (0xB0000000, 0x80000000)
    return low if machine.ram_bytes >= limit else machine.ram_bytes


def apic_id(machine, index):
    """Sockets are numbered from a power of two on (SDM vol. 3A, 9.9.1)."""
    cores = re.search(r"cores=(\d+)", " ".join(machine.extra))
    if not cores:
        return index
    return index // int(cores[1]) << (int(cores[1]) - 1).bit_length() | index % int(cores[1])


def ranges(machine):
    """The ranges of each node's RAM, which lie one after the other, except for the hole below 4 GiB."""
    low, at, found = below_4g(machine), 0, {}
    high = AMD_HIGH if HIGH + machine.ram_bytes - low > AMD_LIMIT else HIGH
    for node, (size, _) in enumerate(node_shares(machine)):
        below = [(at, min(at + size, low))] if size and at < low else []
        above = [(high + max(at, low) - low, high + at + size - low)] if size and at + size > low else []
        found[node], at = below + above, at + size
    return found


def ram_said(lines):
    """{node: its ranges} by `mem nodes`."""
    found = {}
    for line in lines:
        heading, piece = re.match(r"  node (\d+): \d+ MiB,", line), re.match(r"    RAM 0x(\w+) to 0x(\w+)", line)
        if heading:
            said = found.setdefault(int(heading[1]), [])
        if piece:
            said.append((int(piece[1], 16), int(piece[2], 16)))
    return found


def complaints(machine, outcome):
    """What the kernel did not find as it was made: CPUs, their nodes, RAM of each node."""
    told = {apic_id(machine, cpu): node for node, (_, (first, end)) in enumerate(node_shares(machine)) for cpu in range(first, end)}
    rows = re.findall(r"^ +(\d+) +(\d+) (?:this one|idle|busy) .* (\d+)$", outcome.text, re.M)
    said = {int(apic): int(node) for _, node, apic in rows}
    wrong = (apic for apic in said.keys() | told.keys() if said.get(apic) != told.get(apic))
    found = [f"APIC ID {apic} is on node {said.get(apic)}, QEMU put it on {told.get(apic)}" for apic in sorted(wrong)]
    ram, made = ram_said(outcome.lines), ranges(machine)
    if len(rows) != machine.cpus or ram.keys() != made.keys():
        found.append(f"it says {len(rows)} CPUs and nodes {sorted(ram)}, of {machine.cpus} and {machine.nodes}")
    for node, pieces in ram.items():
        wanted = made.get(node, [])
        found += [f"node {node} has {start:#x} to {end:#x}, QEMU gave it {wanted}" for start, end in pieces
                  if not any(first <= start and end <= last for first, last in wanted)]  # fmt: skip
    all_said = sorted(piece for pieces in ram.values() for piece in pieces)
    found += [f"{start:#x} to {end:#x} and what begins at {again:#x} are one" for (start, end), (again, _) in zip(all_said, all_said[1:])
              if again < end]  # fmt: skip
    missing = machine.ram_bytes - sum(end - start for start, end in all_said)
    if not 0 <= missing <= kept_by_firmware(machine):
        found.append(f"{missing} bytes of RAM belong to no node")
    return found
