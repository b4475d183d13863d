"""Writes the text that describes this Linux machine, for the hosted kernel to boot as (tests/host/replay.h)."""

import os
import subprocess
import sys
from pathlib import Path

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


def collect(path):
    """Write the text. Returns the exit status: 0, or 1 if the map of memory could not be read, without which it is no machine."""
    text = describe()
    if "BIOS-e820" not in text:
        print("tests/run --collect: Linux shows no firmware map here (is this root, and not a container?)", file=sys.stderr)
        return 1
    Path(path).write_text(text, encoding="utf-8")
    print(f"{path}: boot it with build/host/asan/ashlar-host -r {path} 'mm.machine.*'")
    return 0
