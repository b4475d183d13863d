#!/usr/bin/env python3
"""Part of `make coverage`: boots a kernel that counts its lines (COV=1), runs all cases, and leaves the counts where gcov looks for them."""

import argparse
import struct
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/qemu"))

from guest import run  # noqa: E402
from machine import Machine, Unavailable  # noqa: E402

SECONDS = 900


def files(stream):
    """(name, bytes) of everything in a stream of coverage.c's. ValueError if it was cut off."""
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


def main():
    parser = argparse.ArgumentParser(description="Run all cases in a guest and keep which lines ran.")
    parser.add_argument("--build", type=Path, required=True, help="where the kernel of COV=1 is")
    args = parser.parse_args()
    build = args.build.resolve()
    for old in build.rglob("*.gcda"):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "counts"
        device = ("-chardev", f"file,id=counts,path={path}", "-device", "isa-debugcon,iobase=0xe9,chardev=counts")
        machine = Machine("pvh", 8, "3G", nodes=2, cmdline='run="test *; coverage"', extra=device)
        try:
            outcome = run(machine, build / "ashlar.elf", SECONDS)
            found = list(files(path.read_bytes()))
        except (Unavailable, OSError, ValueError) as why:
            print(f"coverage: nothing from QEMU: {why}", file=sys.stderr)
            return 1
    (build / "coverage.console").write_text("\n".join(outcome.lines), encoding="utf-8")
    if outcome.verdict != "pass":
        print(f"Not every case passed in QEMU: {build}/coverage.console", file=sys.stderr)
    if f"coverage: {len(found)} files" not in outcome.lines:
        print(f"coverage: the guest ended before it had written everything: {len(found)} files", file=sys.stderr)
        return 1
    for name, content in found:
        target = (ROOT / name).resolve()
        if build not in target.parents or target.suffix != ".gcda":
            print(f"coverage: not written: {name}", file=sys.stderr)
            return 1
        target.write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
