#!/usr/bin/env python3
"""`make bench WHAT=linux` measures the distribution's own kernels beside Ashlar, in the same QEMU and in one report (tests/README.md).

Each turn of a table boots every kernel once, and Ashlar once for each of its rows, so that all of them meet the same host. A kernel that is
not available or does not start is named, and the measurement goes on. Linux under emulation sometimes stops while it starts, because its
timer came late, so each leg is tried three times.
"""

import re
import subprocess
import sys
from dataclasses import replace

from legs import ROOT, Leg, arguments, bench

WORDS = "console=ttyS0 panic=-1 quiet init_on_alloc=0"
OFF = f"{WORDS} hugetlb_free_vmemmap=off"
TRIES, SECONDS = 3, 900
TABLE = re.compile(r"^\[(\S+)\] (\d+) (\S+) (\d+)\n((?:.+\n)+)", re.M)
SIDE = re.compile(r"^(\S+)(?: ([\d.]+))?  +(.+)$", re.M)


def tables():
    """{name: (CPUs, memory, turns, {side: {series of kernels, or "": command line}})} of linux.txt."""
    found = {}
    for name, cpus, mem, turns, lines in TABLE.findall((ROOT / "tests/report/linux.txt").read_text(encoding="utf-8")):
        sides = {}
        for side, series, words in SIDE.findall(lines):
            sides.setdefault(side, {})[series] = words
        found[name] = int(cpus), mem, int(turns), sides
    return found


TABLES = tables()


def kernels(tools):
    """[(series, kernel, initrd)] of the kernels that are there."""
    script, text = [str(ROOT / "tests/report/linux/fetch.sh"), str(tools)], ""
    try:
        text = subprocess.run(script, stdout=subprocess.PIPE, text=True, timeout=900, check=False).stdout
    except subprocess.TimeoutExpired:
        print("fetching kernels took over 900 s", file=sys.stderr)
    had = [tuple(line.split()) for line in text.splitlines() if len(line.split()) == 3]
    if not had:
        print("no kernel could be had: only Ashlar's side is measured", file=sys.stderr)
    return had


def early_clock(tools):
    """The word that gives Linux a clock from its beginning, or "" if the rate of the time stamp counter is not known."""
    try:
        done = subprocess.run([str(tools / "linux/tsc_khz")], stdout=subprocess.PIPE, text=True, timeout=10, check=False)
        return f"tsc_early_khz={int(done.stdout)}"
    except (OSError, ValueError, subprocess.TimeoutExpired) as why:
        print(f"bench-linux: Linux's clock begins late: {why}", file=sys.stderr)
        return ""


def legs_of(table, had, clock=""):
    """Every turn of a table: each kernel, then Ashlar's sides, all on the same machine. `clock` is early_clock()'s word."""
    cpus, mem, turns, sides = TABLES[table]
    base = Leg("", "", cpus, mem, seconds=SECONDS)
    for turn in range(1, turns + 1):
        for side, words in sides.items():
            name = f"peer-{table}-{side}-{turn}"
            if not side.startswith("linux"):
                yield replace(base, name=name, cmdline=words[""])
                continue
            for series, kernel, initrd in had:
                cmdline = words.get(series, words[""]).format(words=WORDS, off=OFF, clock=clock)
                yield replace(base, name=f"{name}-{series}", cmdline=cmdline, kernel=kernel, initrd=initrd, tries=TRIES)


def main():
    args = arguments("Measure Linux beside Ashlar: tables, or their beginnings.")
    tables = [table for table in TABLES if not args.only or any(f"{table}-".startswith(f"{name}-") for name in args.only)]
    had, clock = kernels(args.tools), early_clock(args.tools)
    legs = (leg for table in tables for leg in legs_of(table, had, clock))
    return bench(legs, args.build, [f"peer-{table}-*.console" for table in tables])


if __name__ == "__main__":
    sys.exit(main())
