#!/usr/bin/env python3
"""`make bench-linux`: the distribution's own kernels in the same QEMU, beside Ashlar, in one report.

fetch.sh unpacks the kernels, linux/init is all that runs in them. Before S0's batching: 6.1; with it: 6.12. 6.1 makes fewer pages
where each costs a shootdown of many CPUs. Ashlar's legs are run again in between, so that both met the same host. A kernel that cannot be had
or does not start is named, and the rest goes on. Linux under emulation sometimes stops while it starts, when its timer came
late: each leg is tried three times.
"""

import argparse
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from legs import LEGS, ROOT, Leg, report, run_all

WORDS = "console=ttyS0 panic=-1 quiet init_on_alloc=0 hugetlb_free_vmemmap=off"
TRIES, SECONDS, RUNS = 3, 300, 3
# CPUs, pages of 2 MiB for 6.1 and for later ones
HVO = ((2, 1024, 4096), (8, 1024, 4096), (32, 128, 4096))
GIGA = (2, 60, "64G")  # CPUs, pages of 1 GiB, memory: as contig-fresh


def kernels(tools):
    """[(series, kernel, initrd)] of what there is."""
    script = [str(ROOT / "tests/report/linux/fetch.sh"), str(tools)]
    try:
        done = subprocess.run(script, stdout=subprocess.PIPE, text=True, timeout=900, check=False)
    except subprocess.TimeoutExpired:
        print("bench-linux: fetching kernels took over 900 s", file=sys.stderr)
        return []
    return [tuple(line.split()) for line in done.stdout.splitlines() if len(line.split()) == 3]


def linux_legs(series, kernel, initrd):
    """Its S0 table, and where it has what S4 made faster, its 1 GiB pages."""
    base = Leg("", "", seconds=SECONDS, kernel=kernel, initrd=initrd, tries=TRIES)
    old = series == "6.1"
    for cpus, few, many in HVO:
        words = f"{WORDS} bench_hvo={few if old else many} bench_runs={1 if old and cpus > 2 else RUNS}"
        yield replace(base, name=f"linux-{series}-hvo-{cpus}", cmdline=words, cpus=cpus, mem="12G")
    yield replace(
        base, name=f"linux-{series}-giga-{GIGA[0]}", cmdline=f"{WORDS} bench_giga={GIGA[1]}", cpus=GIGA[0], mem=GIGA[2]
    )


def our_legs():
    """Ashlar's, of the same machines: the two tables."""
    by_name = {leg.name: leg for leg in LEGS}
    yield from (by_name[f"hvo-{cpus}"] for cpus, _, _ in HVO)
    yield by_name["contig-fresh"]


def boot_legs(kernels_had):
    """Boots that make all struct pages, Linux's and ours in turn: what a first touch costs is up to the host's own host."""
    linux = [(series, kernel, initrd) for series, kernel, initrd in kernels_had if series != "6.1"]
    for cpus, _, _ in HVO:
        for turn in range(1, RUNS + 1):
            for series, kernel, initrd in linux:
                name = f"linux-{series}-boot-{cpus}-{turn}"
                yield Leg(name, WORDS, cpus, "12G", seconds=SECONDS, kernel=kernel, initrd=initrd, tries=TRIES)
            yield Leg(f"boot-parallel-{cpus}-{turn}", "memmap=parallel run=machine", cpus, "12G")


def main():
    parser = argparse.ArgumentParser(description="Measure Linux beside Ashlar.")
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--tools", type=Path, default=Path("build/tools"))
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = args.build / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    legs = list(our_legs())
    had = kernels(args.tools)
    for series, kernel, initrd in had:
        legs += linux_legs(series, kernel, initrd)
    if not any(leg.kernel for leg in legs):
        print("bench-linux: no kernel could be had: only Ashlar's side is measured", file=sys.stderr)
    legs.sort(key=lambda leg: (leg.cpus, leg.name))
    failed = run_all(legs + list(boot_legs(had)), args.build.resolve(), folder)
    return 1 if report(folder) or failed else 0


if __name__ == "__main__":
    sys.exit(main())
