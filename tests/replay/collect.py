"""Writes the text that describes this Linux machine, for the hosted kernel to boot as (tests/host/replay.h)."""

import struct
import sys
from pathlib import Path

import acpi_fixture

LEAVES = (0, 1, 4, 0xB, 0x1F, 0x80000000, 0x80000001, 0x80000008, 0x8000001D, 0x8000001E)
SUBLEAVES = {4: 5, 0xB: 4, 0x1F: 6, 0x8000001D: 5}
TABLES = ("APIC", "SRAT", "SLIT", "HPET", "FACP", "SPCR", "MCFG")
KINDS = {"System RAM": "usable", "ACPI Tables": "ACPI data", "ACPI Non-volatile Storage": "ACPI NVS"}


def read(path):
    """The bytes of a file, or None, which is said."""
    try:
        return path.read_bytes()
    except OSError as why:
        print(f"tests/run --collect: {path}: {why.strerror}", file=sys.stderr)
        return None


def memory_map(root):
    """The firmware's map as Linux keeps it, in the words of its log."""
    lines = []
    for entry in sorted((root / "sys/firmware/memmap").glob("*"), key=lambda path: int(path.name)):
        parts = [read(entry / name) for name in ("start", "end", "type")]
        if None in parts:
            continue
        start, end, kind = (part.decode().strip() for part in parts)
        lines.append(f"BIOS-e820: [mem 0x{int(start, 16):016x}-0x{int(end, 16):016x}] {KINDS.get(kind, kind.lower())}")
    return lines


def cpuid(root):
    """Leaves of CPU 0 in the form of `cpuid -1 -r`. The device gives a leaf at the offset (subleaf << 32 | leaf)."""
    path, lines = root / "dev/cpu/0/cpuid", []
    try:
        with open(path, "rb", buffering=0) as device:
            for leaf in LEAVES:
                for subleaf in range(SUBLEAVES.get(leaf, 1)):
                    device.seek(subleaf << 32 | leaf)
                    values = struct.unpack("<4I", device.read(16))
                    names = zip(("eax", "ebx", "ecx", "edx"), values, strict=True)
                    registers = " ".join(f"{name}=0x{value:08x}" for name, value in names)
                    lines.append(f"   0x{leaf:08x} 0x{subleaf:02x}: {registers}")
    except OSError as why:
        print(f"tests/run --collect: {path}: {why.strerror} (modprobe cpuid makes it)", file=sys.stderr)
    return lines


def describe(root=Path("/")):
    tables = (read(path) for name in TABLES if (path := root / "sys/firmware/acpi/tables" / name).exists())
    dump = acpi_fixture.dump([bytearray(table) for table in tables if table])
    return "\n".join([*memory_map(root), "CPU 0:", *cpuid(root), "", dump])


def collect(path):
    """Write the text. Returns the exit status: 0, or 1 if the map of memory could not be read, without which it is no machine."""
    text = describe()
    if "BIOS-e820" not in text:
        print("tests/run --collect: Linux shows no firmware map here (is this root, and not a container?)", file=sys.stderr)
        return 1
    Path(path).write_text(text, encoding="ascii")
    print(f"{path}: boot it with build/host/asan/ashlar-host -r {path} 'mm.machine.*'")
    return 0
