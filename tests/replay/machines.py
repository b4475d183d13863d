"""Texts of machines that the hosted kernel boots as (tests/host/replay.h). All of them are invented here, after what is seen in real ones."""

import struct
from dataclasses import dataclass, field

import acpi_fixture

GIB = 1 << 30
MIB = 1 << 20


@dataclass(frozen=True)
class Machine:
    name: str
    ranges: list  # (first byte, end, name as Linux prints it)
    cpus: list = field(default_factory=lambda: [0])  # APIC IDs
    nodes: list = field(default_factory=list)  # (first byte, end, domain) of memory
    cpu_domains: dict = field(default_factory=dict)  # APIC ID: domain
    distances: list = field(default_factory=list)  # rows of the SLIT
    cpuid: str = ""
    efi: bool = False
    tables: bool = True
    expect_nodes: int = 1
    expect_cpus: int = 0  # described; 0: as many as `cpus`

    @property
    def ram(self):
        return sum(end - start for start, end, kind in self.ranges if kind == "usable")

    def text(self):
        return "\n".join([*self.map_lines(), self.cpuid, acpi_fixture.dump(self.acpi()) if self.tables else ""]) + "\n"

    def map_lines(self):
        if not self.efi:
            return [f"[    0.000000] BIOS-e820: [mem 0x{start:016x}-0x{end - 1:016x}] {kind}" for start, end, kind in self.ranges]
        names = {"reserved": "Reserved", "ACPI data": "ACPI Reclaim Memory"}
        marks = {"special": "SP|  |  |  |  |  |   |WB|WT|WC|UC", "uncached": "  |  |  |  |  |  |   |  |WT|WC|UC"}
        return [
            f"[    0.000000] efi: mem{number:02}: [{names.get(kind, 'Conventional Memory'):<19}|   |  |"
            f"{marks.get(kind, '  |  |  |  |  |  |   |WB|WT|WC|UC')}] range=[0x{start:016x}-0x{end - 1:016x}] ({(end - start) // MIB}MB)"
            for number, (start, end, kind) in enumerate(self.ranges)
        ]

    def acpi(self):
        tables = [table("APIC", struct.pack("<II", 0xFEE00000, 1) + b"".join(map(madt_cpu, self.cpus)))]
        if self.nodes:
            memory = b"".join(srat_memory(*entry) for entry in self.nodes)
            cpus = b"".join(srat_cpu(cpu, self.cpu_domains.get(cpu, 0)) for cpu in self.cpus)
            tables.append(table("SRAT", bytes(12) + cpus + memory))
        if self.distances:
            rows = b"".join(map(bytes, self.distances))
            tables.append(table("SLIT", struct.pack("<Q", len(self.distances)) + rows))
        return tables


def table(signature, body):
    header = signature.encode() + bytes(4) + b"\3\0" + b"ASHLAR" + b"REPLAY  " + bytes(12)
    return acpi_fixture.sum_right(bytearray(header + body))


def madt_cpu(apic_id):
    return struct.pack("<BBHIII", 9, 16, 0, apic_id, 1, apic_id)


def srat_cpu(apic_id, domain):
    return struct.pack("<BBHIIIII", 2, 24, 0, domain, apic_id, 1, 0, 0)


def srat_memory(start, end, domain):
    return struct.pack("<BBIHQQIIQ", 1, 40, domain, 0, start, end - start, 0, 1, 0)


def low(*more):
    """The first megabyte of a PC, and more."""
    return [(0, 0x9FC00, "usable"), (0x9FC00, 0xA0000, "reserved"), (0xF0000, MIB, "reserved"), *more]


def plain(end, hole=3 * GIB):
    """RAM up to the PCI hole and from 4 GiB on."""
    return low((MIB, hole, "usable"), (0xFEC00000, 4 * GIB, "reserved"), (4 * GIB, end, "usable"))


def striped(count, size):
    """Nodes one after the other, the first from address 0 on."""
    return [(4 * GIB + n * size if n else 0, 4 * GIB + (n + 1) * size, n) for n in range(count)]


def intel(package_shift, boot_id=0, hybrid=False):
    leaf = "   0x{:08x} 0x{:02x}: eax=0x{:08x} ebx=0x{:08x} ecx=0x{:08x} edx=0x{:08x}"
    rows = [(0, 0, 0x1F, 0x756E6547, 0x6C65746E, 0x49656E69), (1, 0, 0x806F8, boot_id << 24 & 0xFFFFFFFF, 0, 1 << 28)]
    rows += [(0xB, 0, 1, 2, 0x100, boot_id), (0xB, 1, package_shift, 1 << package_shift, 0x201, boot_id)]
    rows += [(7, 0, 0, 0, 0, 1 << 15)] if hybrid else []
    return "CPU:\n" + "\n".join(leaf.format(*row) for row in rows)


def cards(count):
    """Memory in pieces of 8 GiB with a hole behind each."""
    return [((4 + n * 16) * GIB, (12 + n * 16) * GIB, "usable") for n in range(count)]


def quilt(count):
    """RAM and reserved pieces of three frames in turn, none of them on a page's border."""
    start = 64 * MIB
    return [(start + n * 0x3000 + 0x123, start + (n + 1) * 0x3000 + 0x123, "usable" if n % 2 == 0 else "reserved") for n in range(count)]


EIGHT = [[10 if a == b else 16 if a // 4 == b // 4 else 32 for b in range(8)] for a in range(8)]

MACHINES = (
    Machine("laptop", plain(18 * GIB), list(range(0, 16, 2)) + [1, 3, 5, 7], cpuid=intel(4)),
    Machine("hybrid-laptop", plain(18 * GIB), [0, 1, 8, 9, 16, 18, 20, 22], cpuid=intel(6, boot_id=16, hybrid=True)),
    Machine("boot-cpu-in-the-middle", plain(8 * GIB), [0, 2, 4, 6, 8], cpuid=intel(4, boot_id=4)),
    Machine("boot-cpu-not-listed", plain(8 * GIB), [2, 4], cpuid=intel(4, boot_id=64), expect_cpus=3),
    Machine("no-tables", plain(6 * GIB), tables=False, expect_cpus=1),
    Machine("old-pc-512m", low((MIB, 512 * MIB, "usable"))),
    Machine("tiny-64m", low((MIB, 64 * MIB, "usable"))),
    Machine("hole-at-2g", plain(34 * GIB, hole=2 * GIB), list(range(8))),
    Machine("hole-at-15m", low((MIB, 15 * MIB, "usable"), (16 * MIB, 3 * GIB, "usable"))),
    Machine("acpi-in-ram", low((MIB, GIB, "usable"), (GIB, GIB + 5 * MIB, "ACPI data"), (GIB + 5 * MIB, 3 * GIB, "usable"))),
    Machine("overlaps", plain(8 * GIB) + [(GIB - 1, GIB + 1, "reserved"), (5 * GIB, 9 * GIB, "usable")], list(range(4))),
    Machine("quilt", low((MIB, 32 * MIB, "usable"), *quilt(600), (GIB, 3 * GIB, "usable"))),
    Machine("uefi-desktop", [*plain(32 * GIB), (32 * GIB, 48 * GIB, "special"), (48 * GIB, 49 * GIB, "uncached")], list(range(24)), efi=True, cpuid=intel(5)),
    Machine(
        "two-sockets", plain(4 * GIB + 512 * GIB), list(range(0, 256)), striped(2, 256 * GIB), {n: n // 128 for n in range(256)},
        [[10, 21], [21, 10]], intel(7), expect_nodes=2,
    ),
    Machine(
        "eight-nodes", plain(4 * GIB + 8 * 128 * GIB), list(range(0, 512)), striped(8, 128 * GIB), {n: n // 64 for n in range(512)},
        EIGHT, intel(8), expect_nodes=8,
    ),
    Machine(
        "sparse-domains", plain(4 * GIB + 64 * GIB), [0, 16], [(0, 36 * GIB, 3), (36 * GIB, 68 * GIB, 900)], {0: 3, 16: 900},
        expect_nodes=2,
    ),
    Machine(
        "node-without-memory", plain(8 * GIB), [0, 1, 2, 3], [(0, 8 * GIB, 0)], {2: 1, 3: 1}, [[10, 20], [20, 10]], expect_nodes=2,
    ),
    Machine(
        "node-without-cpus", plain(4 * GIB + 64 * GIB), [0, 1], striped(2, 32 * GIB), {}, [[10, 17], [28, 10]], expect_nodes=2,
    ),
    Machine(
        "small-node", plain(68 * GIB), [0, 1], [(0, 68 * GIB - 8 * MIB, 0), (68 * GIB - 8 * MIB, 68 * GIB, 1)], {1: 1}, [[10, 20], [20, 10]],
        expect_nodes=2,
    ),
    Machine("slit-that-lies", plain(68 * GIB), [0, 1], striped(2, 32 * GIB), {1: 1}, [[20, 10], [10, 0]], expect_nodes=2),
    Machine("srat-overlaps", plain(68 * GIB), [0, 1], [(0, 40 * GIB, 0), (36 * GIB, 68 * GIB, 1)], {1: 1}),
    Machine("holes-everywhere", low((MIB, 3 * GIB, "usable"), *cards(64)), list(range(4))),
    Machine(
        "sixteen-tib", plain(16 << 40), list(range(2048)), striped(32, 511 * GIB), {n: n // 64 for n in range(2048)}, cpuid=intel(9),
        expect_nodes=32,
    ),
    Machine("many-x2apic-ids", plain(64 * GIB), [n * 1000 for n in range(4096)]),
)
