#!/usr/bin/env python3
"""Part of `make test WHAT=coverage`: boots a kernel that counts its lines (COV=1), runs cases, and writes the sums to the files that gcov reads."""

import argparse
import shutil
import struct
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/qemu"))

from guest import run  # noqa: E402
from machine import Machine, Unavailable  # noqa: E402

SECONDS = 900


def files(stream):
    """(name, bytes) of every file in a stream that coverage.c wrote. ValueError if the stream was cut off."""
    at = 0
    while at < len(stream):
        end = stream.index(b"\0", at)
        name, at, content = stream[at:end].decode(), end + 1, b""
        while True:
            if at + 4 > len(stream):
                raise ValueError("the counts end in the middle of a file")
            (length,) = struct.unpack_from("<I", stream, at)
            at += 4
            if length == 0:
                break
            content += stream[at : at + length]
            at += length
        yield name, content


# Machines with default switches, and with switches that only words at boot can choose.
MACHINES = [
    Machine("pvh", 8, "3G", nodes=2, cmdline='run="test *; coverage"'),
    Machine(
        "pvh",
        2,
        "1G",
        cmdline="memmap=parallel hugepagesz=2M hugepages=8 pcp.high=64 pcp.type_cache=on debug.page_owner=on debug.poison=on"
        ' run="test mm.p*,mm.clear*; coverage"',
    ),
]


def counts_of(machine, build, folder):
    """Run a machine; returns the [(file, counts)] that it left. ValueError, OSError or Unavailable if there are none."""
    path = folder / "counts"
    device = ("-chardev", f"file,id=counts,path={path}", "-device", "isa-debugcon,iobase=0xe9,chardev=counts")
    outcome = run(replace(machine, extra=device), build / "ashlar.elf", SECONDS)
    found = list(files(path.read_bytes()))
    (build / f"coverage-{machine.name}.console").write_text("\n".join(outcome.lines), encoding="utf-8")
    if outcome.verdict != "pass":
        raise ValueError(f"not every case passed: {build}/coverage-{machine.name}.console")
    if f"coverage: {len(found)} files" not in outcome.lines:
        raise ValueError(f"the guest ended before it had written everything: {len(found)} files")
    return found


def write(found, build, folder):
    """Write the counts of a run below `folder`, at the places that they name below `build`. ValueError for any other place."""
    for name, content in found:
        target = (ROOT / name).resolve()
        if build not in target.parents or target.suffix != ".gcda":
            raise ValueError(f"not written: {name}")
        target = folder / target.relative_to(build)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def main():
    parser = argparse.ArgumentParser(description="Run the cases in guests and keep which lines ran.")
    parser.add_argument("--build", type=Path, required=True, help="where the kernel of COV=1 is")
    args = parser.parse_args()
    build = args.build.resolve()
    for old in build.rglob("*.gcda"):
        old.unlink()
    with tempfile.TemporaryDirectory() as scratch:
        sums = None
        for number, machine in enumerate(MACHINES):
            tree, merged = Path(scratch) / f"tree{number}", Path(scratch) / f"merged{number}"
            try:
                write(counts_of(machine, build, Path(scratch)), build, tree)
            except (Unavailable, OSError, ValueError) as why:
                print(f"coverage: nothing from QEMU, {machine.name}: {why}", file=sys.stderr)
                return 1
            if sums:
                subprocess.run(["gcov-tool", "merge", "-o", str(merged), str(sums), str(tree)], check=True)
            sums = merged if sums else tree
        shutil.copytree(sums, build, dirs_exist_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
