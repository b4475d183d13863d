"""Writes the text that describes a machine, for the hosted kernel to boot as (tests/host/replay.h): this Linux machine, or another one
from files that tools of Linux, FreeBSD, OpenBSD or Windows wrote there."""

import os
import re
import subprocess
import sys
from pathlib import Path

from acpi_fixture import dump

KINDS = {"System RAM": "usable", "ACPI Tables": "ACPI data", "ACPI Non-volatile Storage": "ACPI NVS"}


def memory_map(root):
    """The firmware's map as Linux keeps it, in the words of its log."""
    lines = []
    for entry in sorted((root / "sys/firmware/memmap").glob("*"), key=lambda path: int(path.name)):
        if not os.access(entry / "start", os.R_OK):
            continue  # collect() says that there is no map
        start, end, kind = ((entry / name).read_text().strip() for name in ("start", "end", "type"))
        lines.append(f"BIOS-e820: [mem 0x{int(start, 16):016x}-0x{int(end, 16):016x}] {KINDS.get(kind, kind.lower())}")
    return lines


def output_of(*argv):
    """What a tool prints, or "", and why is said."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as why:
        print(f"tests/run --collect: {why} (acpidump is in the package acpica-tools, cpuid in cpuid)", file=sys.stderr)
        return ""
    return done.stdout


def describe(root=Path("/")):
    return "\n".join([*memory_map(root), output_of("cpuid", "-1", "-r"), output_of("acpidump")]) + "\n"


class Refused(Exception):
    """What cannot be read; the text says why and what to give instead."""


# What cannot be turned into bytes again, by a line that only it has.
DECODED = {
    r"^\s*[A-Z0-9!]{4}: Length=\d+, Revision=\d+": "what FreeBSD's `acpidump -t` decoded; acpidump of ACPICA prints bytes",
    r"^\[[0-9A-F]{3}h [0-9]{4}": "what iasl decoded; the table that it read will do",
    r"RW-?Everything|Read & Write Utility": "RWEverything's text, whose form is not published; a table that it saved as binary will do",
}
READ = r"BIOS-e820: \[mem 0x|efi: mem\d*: \[|^[!-Z]{4} @ 0x|^ *0x\w{8} 0x\w\w: eax=|^CPUID \w{8}: "
# FreeBSD's sysctl machdep.smap and machdep.efi_map, and the same lines of a verbose boot.
SMAP = re.compile(r"SMAP type=(\w+),?(?: xattr=\w+,)? base=(\w+),? len=(\w+)")
EFI_MAP = re.compile(r"^ *(\w+) ([0-9a-f]{12}) +(?:0x)?[0-9a-f]+ ([0-9a-f]{8,}) ((?:[A-Z_]+ ?)*)\s*$")
EFI_NAMES = {"ConventionalMemory": "Conventional Memory", "BootServicesCode": "Boot Code", "BootServicesData": "Boot Data"}


def binary_tables(data):
    """The tables that stand one after the other in these bytes, as `acpidump -b`, FreeBSD's and OpenBSD's -o write them; [] if it is
    anything else."""
    found = []
    while len(data) >= 36 and re.match(rb"[A-Z0-9!]{4}", data) and 36 <= (size := int.from_bytes(data[4:8], "little")) <= len(data):
        found.append(data[:size])
        data = data[size:]
    return [] if data else found


def line_of(text):
    """A line of another system's map in Linux's words."""
    if found := SMAP.search(text):
        kind, start, size = (int(number, 16) for number in found.groups())
        return f"BIOS-e820: [mem 0x{start:016x}-0x{start + size - 1:016x}] {'usable' if kind == 1 else 'reserved'}" if size else ""
    if found := EFI_MAP.match(text):
        name, start, size = found[1], int(found[2], 16), int(found[3], 16) << 12
        marks = "|".join([EFI_NAMES.get(name, name), *found[4].split(), ""])
        return f"efi: mem: [{marks}] range=[0x{start:016x}-0x{start + size - 1:016x}]" if size else ""
    return text


def text_of(path):
    """A file of any of these tools as text that the hosted kernel reads; or Refused."""
    data = Path(path).read_bytes()
    if tables := binary_tables(data):
        return dump(tables)
    wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")  # Windows' shell writes what a program prints so
    text = "\n".join(map(line_of, data.decode("utf-16" if wide else "utf-8", "replace").splitlines()))
    for line, why in DECODED.items():
        if re.search(line, text, re.M):
            raise Refused(f"{path} is {why}")
    if not re.search(READ, text, re.M):
        raise Refused(f"{path} has neither ACPI tables nor a line that describes memory or a CPU")
    return text


def collect(path, files=()):
    """Write the text, of this machine or from files. Returns the exit status: 0, or 1 if there is no map of memory, without which it is
    no machine."""
    try:
        text = "\n".join(map(text_of, files)) + "\n" if files else describe()
        if "BIOS-e820" not in text and "efi: mem" not in text:
            raise Refused("none of these files has a map of memory (dmesg, sysctl machdep.smap or machdep.efi_map)" if files else
                          "Linux shows no firmware map here (is this root, and not a container?)")  # fmt: skip
    except (OSError, Refused) as why:
        print(f"tests/run --collect: {why}", file=sys.stderr)
        return 1
    Path(path).write_text(text, encoding="utf-8")
    print(f"{path}: boot it with build/host/asan/ashlar-host -r {path} 'mm.machine.*'")
    return 0
