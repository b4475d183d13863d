#!/usr/bin/env python3
"""`make bench WHAT=linux` measures the distribution's own kernels beside Ashlar, in the same QEMU and in one report (tests/README.md).

Each turn of a table boots every kernel once, and Ashlar once for each of its rows, so that all of them meet the same host. A kernel that is
not available or does not start is named, and the measurement goes on. Linux under emulation sometimes stops while it starts, because its
timer came late, so each leg is tried three times.
"""

import subprocess
import sys
from dataclasses import dataclass, replace

from legs import ROOT, Leg, arguments, bench

WORDS = "console=ttyS0 panic=-1 quiet init_on_alloc=0"
OFF = f"{WORDS} hugetlb_free_vmemmap=off"
TRIES, SECONDS, RUNS, TURNS = 3, 900, 3, 3
MANY, FEW = 4096, 128  # pages of 2 MiB; the second for unbatched shootdowns of many CPUs
TOUCHED = 64  # pages of 2 MiB
FAULT1_MS = 100  # the least time of a sample of page_fault1; one region takes longer under emulation
BOOT_MODES = ("off", "unbatched", "batched", "on")  # Ashlar's hvo= for pools at boot; with `on` pages stay bare until they are taken
AGE_OPS = 1_000_000  # of the trace that ages memory
GIGA_BOOT_MODES = (*BOOT_MODES, "preinit")  # hvo= for pools of 1 GiB pages made at boot: born optimised, as in Linux since 6.15
READY_MEM, GIGA_POOL = "64G", 56
FULL_POOL = 31_600  # pages of 2 MiB: over 98% of the memory that Linux counts in 64 GiB, which does not include its struct pages


@dataclass(frozen=True)
class Side:
    """One boot of a turn: Ashlar with this command line, or each Linux with the words that `linux` returns for its series."""

    name: str
    cmdline: str = ""
    linux: object = None
    early_clock: bool = False  # the clock of Linux begins with the kernel


def hvo_words(cpus):
    """Each optimised page of 6.1 costs a shootdown, so 6.1 makes fewer pages, and only once, where there are many CPUs."""

    def words(series):
        old = series == "6.1" and cpus > 2
        pages = FEW if old and cpus > 8 else MANY // 4 if series == "6.1" else MANY
        return f"{OFF} bench_hvo={pages} bench_runs={1 if old else RUNS}"

    return words


def hvo(cpus):
    """The HVO series, and in the same boots the memmap series: all struct pages at start, by as many threads as the node has CPUs."""
    return [
        Side("linux", linux=hvo_words(cpus)),
        Side("hvo", f'bench="hvo runs={RUNS} pages={MANY}"'),
        *(Side(f"boot-{way}", f"memmap={way} run=machine") for way in ("parallel", "eager", "lazy")),
    ]


def giga():
    """The contiguous-range series: pages of 1 GiB at run time, ten more at a time."""
    return [
        Side("linux", linux=lambda series: f"{OFF} bench_giga=60"),
        *(Side(f"contig-{search}", f'bench="contig memory=fresh total=60 searches={search}"') for search in ("skip", "step", "index")),
    ]


def fault():
    """The clearing series: one task touches a region of huge pages. Linux clears with `rep stosb` here, and so does Ashlar's first side."""
    return [
        Side("linux", linux=lambda series: f"{OFF} bench_touch={TOUCHED} bench_runs=1"),
        Side("fault-erms", f'bench="fault bytes={TOUCHED * 2}M" clear.insn=erms'),
        Side("fault-own", f'bench="fault bytes={TOUCHED * 2}M"'),
    ]


def pools():
    """A pool of 2 MiB pages made at boot."""
    linux = f"{WORDS} initcall_debug log_buf_len=8M hugepages={MANY}"
    return [
        Side("linux-off", linux=lambda series: f"{linux} hugetlb_free_vmemmap=off"),
        Side("linux-on", linux=lambda series: f"{linux} hugetlb_free_vmemmap=on"),
        *(Side(f"pool-{mode}", f"hugepages={MANY} hvo={mode} run=machine") for mode in BOOT_MODES),
    ]


def page_fault1():
    """The per-CPU list series: 4 KiB pages are faulted in and unmapped, one sample a boot. Linux clears them with `rep stosb`, as above."""
    ours = f'bench="page_fault1 ms={FAULT1_MS} samples=1"'
    return [
        Side("linux", linux=lambda series: f"{OFF} bench_page_fault1={FAULT1_MS} bench_runs=1"),
        Side("fault1-erms", f"{ours} clear.insn=erms"),
        Side("fault1-own", ours),
    ]


def history():
    """What can still be had after days of work: pages of both sizes, whose struct pages are made and taken away again and again."""
    return [Side("linux", linux=lambda series: f"{OFF} bench_history=10"), Side("history", "bench=history")]


def gigablock():
    """Placement by GiB: memory is aged by a trace, and then made into pages of 1 GiB. Counts, which need no second turn."""
    ours = f"bench=gigablock bench.gigablock.ops={AGE_OPS}"
    return [Side("linux", linux=lambda series: f"{OFF} bench_gigablock={AGE_OPS}"), Side("gigablock", ours)]


def quiet():
    """Programs on all CPUs but the first while a pool is resized, with nohz_full and without. Linux 6.1 stops them for each page."""

    def words(isolated):
        more = f"nohz_full={isolated} rcu_nocbs={isolated} isolcpus=nohz,domain,managed_irq,{isolated}" if isolated else ""
        return lambda series: f"{OFF} tsc=reliable bench_quiet={FEW // 4 if series == '6.1' else MANY} bench_runs={RUNS} {more}"

    return [Side("linux-plain", linux=words("")), Side("linux-nohz", linux=words("1-3")), Side("quiet", "bench=quiet")]


def ready():
    """How much later each kernel is ready if it makes a pool at boot: pages of 1 GiB, or most of memory in pages of 2 MiB."""
    linux = f"{WORDS} initcall_debug log_buf_len=8M"
    pools_of = {"giga": (f"hugepagesz=1G hugepages={GIGA_POOL}", GIGA_BOOT_MODES), "full": (f"hugepages={FULL_POOL}", BOOT_MODES)}
    none = f"{linux} hugetlb_free_vmemmap=off"
    sides = [Side("linux-none", linux=lambda series: none, early_clock=True), Side("none", "run=machine")]
    for name, (pool, modes) in pools_of.items():
        for state in ("off", "on"):
            words = f"{linux} hugetlb_free_vmemmap={state} {pool}"
            sides.append(Side(f"linux-{name}-{state}", linux=lambda series, words=words: words, early_clock=True))
        sides += [Side(f"{name}-{mode}", f"{pool} hvo={mode} run=machine") for mode in modes]
    return sides


# name: (CPUs, memory, sides)
TABLES = {
    "hvo-2": (2, "12G", hvo(2)),
    "hvo-8": (8, "12G", hvo(8)),
    "hvo-32": (32, "12G", hvo(32)),
    "giga-2": (2, "64G", giga()),
    "fault-2": (2, "6G", fault()),
    "pools-2": (2, "12G", pools()),
    "pools-32": (32, "12G", pools()),
    "page_fault1-2": (2, "8G", page_fault1()),
    "history-2": (2, "16G", history()),
    "ready-2": (2, READY_MEM, ready()),
    "gigablock-1": (1, "10G", gigablock()),
    "quiet-4": (4, "10G", quiet()),
}
COUNTED = ("gigablock-1", "quiet-4")  # tables of which one turn is enough


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
    cpus, mem, sides = TABLES[table]
    base = Leg("", "", cpus, mem, seconds=SECONDS)
    for turn in range(1, 2 if table in COUNTED else TURNS + 1):
        for side in sides:
            name = f"peer-{table}-{side.name}-{turn}"
            if not side.linux:
                yield replace(base, name=name, cmdline=side.cmdline)
                continue
            for series, kernel, initrd in had:
                words = f"{side.linux(series)} {clock}" if side.early_clock else side.linux(series)
                yield replace(base, name=f"{name}-{series}", cmdline=words, kernel=kernel, initrd=initrd, tries=TRIES)


def main():
    args = arguments("Measure Linux beside Ashlar: tables, or their beginnings.")
    tables = [table for table in TABLES if not args.only or any(f"{table}-".startswith(f"{name}-") for name in args.only)]
    had, clock = kernels(args.tools), early_clock(args.tools)
    legs = (leg for table in tables for leg in legs_of(table, had, clock))
    return bench(legs, args.build, [f"peer-{table}-*.console" for table in tables])


if __name__ == "__main__":
    sys.exit(main())
