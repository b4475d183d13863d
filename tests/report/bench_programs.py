#!/usr/bin/env python3
"""`make bench-programs` runs the same static ELF files on the distribution's kernels and on Ashlar, in the same QEMU, in turn.

The programs are tests/programs/bench. Each prints its records itself, so that both sides are measured and read in the same way. A boot of
Linux runs all programs one after the other (linux/init), and a boot of Ashlar runs one. Linux has mitigations=off, because Ashlar has no
mitigations. Then every program runs once more with instructions counted (QEMU -icount, where an instruction of any CPU takes a nanosecond
of the guest). These counts do not depend on other work of the host.

    make bench-programs BENCH=null,larson      run these programs only
    make bench-programs CPUS=4                 on machines with 4 CPUs only; 1,4 for two
"""

import argparse
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from bench_linux import TRIES, WORDS, kernels
from legs import ROOT, Leg, report, run_all

import cpio  # tests/qemu, which legs.py adds to the path
from program import Program

SOURCES = ROOT / "tests/programs/bench"
CPUS, TURNS, MS, MEM, SECONDS = (1, 4, 16), 3, 300, "4G", 300
SERIES = lambda series: series != "6.1"  # noqa: E731 - the newest, and 6.12
COUNTED, COUNTED_MS = (1, 4), 10  # CPUs of the machines that count instructions, and what a program takes there
# Without the tests of ciphers, which would run beside the programs for seconds.
LINUX = f"{WORDS} init_on_free=0 mitigations=off cryptomgr.notests"


def names():
    return sorted(path.stem for path in SOURCES.glob("*.c") if path.stem != "bench")


def build(folder, wanted):
    """{name: path} of the programs. Raises CalledProcessError."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in wanted:
        files = [str(SOURCES / f"{name}.c"), str(SOURCES / "bench.c")]
        subprocess.run(["gcc", "-O2", "-Wall", "-static", "-pthread", *files, "-o", str(folder / name)], check=True, timeout=120)
    return {name: folder / name for name in wanted}


def with_programs(initrd, programs, out):
    """An initrd with /programs: Linux unpacks one archive behind the other."""
    data = Path(initrd).read_bytes()
    data += bytes(-len(data) % 4) + cpio.entry("programs", 0o40755)
    data += b"".join(cpio.entry(f"programs/{name}", 0o100755, path.read_bytes()) for name, path in programs.items())
    out.write_bytes(data + cpio.trailer())
    return str(out)


def on_linux(base, series, kernel, initrd, argument):
    words = f"{LINUX} bench_programs={argument}"
    return replace(base, name=f"{base.name}-linux-{series}", cmdline=words, kernel=kernel, initrd=initrd, tries=TRIES)


def on_ashlar(base, path, argument):
    program = Program(str(path), f"{base.cpus} {argument}")
    module = program.write(path.with_suffix(f".{base.cpus}.{argument}.cpio"))
    shown = f"make run FIRMWARE=pvh CPUS={base.cpus} MEM={base.mem} PROGRAM={path.name} ARGS='{program.args}'"
    return replace(base, name=f"{base.name}-ashlar-{path.name}", cmdline=program.words, initrd=str(module), shown=shown)


def legs_of(programs, cpus, turns, had, folder):
    """Every turn of every machine: each kernel with all programs, then Ashlar with each."""
    had = [(series, kernel, initrd) for series, kernel, initrd in had if SERIES(series)]
    initrds = {initrd: with_programs(initrd, programs, folder / "programs.initrd") for _, _, initrd in had}
    bases = [
        *((Leg(f"programs-{count}-{turn}", "", count, MEM, seconds=SECONDS), MS) for count in cpus for turn in range(1, turns + 1)),
        *((Leg(f"programs-icount-{count}", "", count, MEM, seconds=SECONDS, accel="icount"), COUNTED_MS) for count in COUNTED),
    ]
    for base, ms in bases:
        for series, kernel, initrd in had:
            yield on_linux(base, series, kernel, initrds[initrd], ms)
        yield from (on_ashlar(base, path, ms) for path in programs.values())


def main():
    parser = argparse.ArgumentParser(description="Run the same programs on Linux and on Ashlar.")
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--tools", type=Path, default=Path("build/tools"))
    parser.add_argument("--only", default="", help="names of programs, commas between")
    parser.add_argument("--cpus", default="", help="numbers of CPUs, commas between; 0: only with instructions counted")
    parser.add_argument("--turns", type=int, default=TURNS)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    wanted = [name for name in args.only.split(",") if name] or names()
    if unknown := [name for name in wanted if name not in names()]:
        print(f"make bench-programs: no such program: {', '.join(unknown)}; there are {', '.join(names())}", file=sys.stderr)
        return 2
    cpus = [int(word) for word in args.cpus.split(",") if int(word) > 0] if args.cpus else CPUS
    folder = args.build.resolve() / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        programs = build(args.build.resolve() / "programs", wanted)
    except subprocess.CalledProcessError as why:
        print(f"make bench-programs: a program cannot be built: {why}", file=sys.stderr)
        return 1
    had = kernels(args.tools)
    if not had:
        print("bench-programs: no kernel could be had: only Ashlar's side is measured", file=sys.stderr)
    for old in folder.glob("programs-*.console"):  # an earlier session met another state of the host
        old.unlink()
    failed = run_all(list(legs_of(programs, cpus, args.turns, had, folder)), args.build.resolve(), folder)
    return 1 if report(folder) or failed else 0


if __name__ == "__main__":
    sys.exit(main())
