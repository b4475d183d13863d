#!/usr/bin/env python3
"""`make bench-linux`: the distribution's own kernels in the same QEMU, beside Ashlar, in one report.

fetch.sh unpacks the kernels (6.1: before S0's batching; 6.12: with it; the newest: S2 merged, S4 done again), linux/init and linux/touch.c
are all that runs in them. A table is measured in turns: each turn boots every kernel once and Ashlar as often as the table has rows of
it, so that all met the same host. 6.1 makes fewer pages where each costs a shootdown of many CPUs. A kernel that cannot be had or
does not start is named, and the rest goes on. Linux under emulation sometimes stops while it starts, when its timer came
late: each leg is tried three times.

    make bench-linux BENCH=fault,pools        these tables; the others keep what they measured before
"""

import argparse
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from legs import ROOT, Leg, report, run_all

WORDS = "console=ttyS0 panic=-1 quiet init_on_alloc=0"
OFF = f"{WORDS} hugetlb_free_vmemmap=off"
TRIES, SECONDS, RUNS, TURNS = 3, 300, 3, 3
MANY, FEW = 4096, 128  # pages of 2 MiB; for unbatched shootdowns of many CPUs
TOUCHED = 64  # pages of 2 MiB


@dataclass(frozen=True)
class Side:
    """One boot of a turn: Ashlar with this command line, or each Linux with what `linux` makes of its series."""

    name: str
    cmdline: str = ""
    linux: object = None


def hvo_words(cpus):
    """6.1's optimised pages cost a shootdown each: fewer of them, once, where there are many CPUs."""

    def words(series):
        old = series == "6.1" and cpus > 2
        pages = FEW if old and cpus > 8 else MANY // 4 if series == "6.1" else MANY
        return f"{OFF} bench_hvo={pages} bench_runs={1 if old else RUNS}"

    return words


def hvo(cpus):
    """S0, and in the same boots S1: all struct pages at start, by as many threads as the node has CPUs."""
    return [
        Side("linux", linux=hvo_words(cpus)),
        Side("hvo", f"bench=hvo runs={RUNS} pages={MANY}"),
        *(Side(f"boot-{way}", f"memmap={way} run=machine") for way in ("parallel", "eager", "lazy")),
    ]


def giga():
    """S4: pages of 1 GiB at run time, ten more at a time."""
    return [
        Side("linux", linux=lambda series: f"{OFF} bench_giga=60"),
        *(Side(f"contig-{search}", f"bench=contig memory=fresh total=60 searches={search}") for search in ("skip", "step", "index")),
    ]


def fault():
    """S2: a region of huge pages is touched by one task. Linux clears with `rep stosb` here; so does the first of Ashlar's sides."""
    return [
        Side("linux", linux=lambda series: f"{OFF} bench_touch={TOUCHED} bench_runs={RUNS}"),
        Side("fault-erms", f"bench=fault fault_bytes={TOUCHED * 2}M clear_insn=erms"),
        Side("fault-own", f"bench=fault fault_bytes={TOUCHED * 2}M"),
    ]


def pools():
    """A pool of 2 MiB pages made at boot."""
    linux = f"{WORDS} initcall_debug log_buf_len=8M hugepages={MANY}"
    return [
        Side("linux-off", linux=lambda series: f"{linux} hugetlb_free_vmemmap=off"),
        Side("linux-on", linux=lambda series: f"{linux} hugetlb_free_vmemmap=on"),
        *(Side(f"pool-{mode}", f"hugepages={MANY} hvo={mode} run=machine") for mode in ("off", "batched", "on")),
    ]


# name: (CPUs, memory, sides)
TABLES = {
    "hvo-2": (2, "12G", hvo(2)),
    "hvo-8": (8, "12G", hvo(8)),
    "hvo-32": (32, "12G", hvo(32)),
    "giga-2": (2, "64G", giga()),
    "fault-2": (2, "6G", fault()),
    "pools-2": (2, "12G", pools()),
    "pools-32": (32, "12G", pools()),
}


def kernels(tools):
    """[(series, kernel, initrd)] of what there is."""
    script = [str(ROOT / "tests/report/linux/fetch.sh"), str(tools)]
    try:
        done = subprocess.run(script, stdout=subprocess.PIPE, text=True, timeout=900, check=False)
    except subprocess.TimeoutExpired:
        print("bench-linux: fetching kernels took over 900 s", file=sys.stderr)
        return []
    return [tuple(line.split()) for line in done.stdout.splitlines() if len(line.split()) == 3]


def legs_of(table, turns, had):
    """Every turn of a table: each kernel, then Ashlar's sides, all on the same machine."""
    cpus, mem, sides = TABLES[table]
    base = Leg("", "", cpus, mem, seconds=SECONDS)
    for turn in range(1, turns + 1):
        for side in sides:
            name = f"peer-{table}-{side.name}-{turn}"
            if not side.linux:
                yield replace(base, name=name, cmdline=side.cmdline)
                continue
            for series, kernel, initrd in had:
                words = side.linux(series)
                yield replace(
                    base, name=f"{name}-{series}", cmdline=words, kernel=kernel, initrd=initrd, tries=TRIES
                )


def main():
    parser = argparse.ArgumentParser(description="Measure Linux beside Ashlar.")
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--tools", type=Path, default=Path("build/tools"))
    parser.add_argument("--only", default="", help="names of tables, or their beginnings, commas between")
    parser.add_argument("--turns", type=int, default=TURNS)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    wanted = [name for name in args.only.split(",") if name]
    tables = [table for table in TABLES if not wanted or any(table == name or table.startswith(f"{name}-") for name in wanted)]
    if not tables:
        print(f"make bench-linux: no such table: {args.only}; there are {', '.join(TABLES)}", file=sys.stderr)
        return 2
    folder = args.build / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    had = kernels(args.tools)
    if not had:
        print("bench-linux: no kernel could be had: only Ashlar's side is measured", file=sys.stderr)
    legs = [leg for table in tables for leg in legs_of(table, args.turns, had)]
    for table in tables:  # what an earlier session measured is of another day's host
        for old in folder.glob(f"peer-{table}-*.console"):
            old.unlink()
    failed = run_all(legs, args.build.resolve(), folder)
    return 1 if report(folder) or failed else 0


if __name__ == "__main__":
    sys.exit(main())
