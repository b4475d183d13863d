#!/usr/bin/env python3
"""What HVO costs when a pool grows, on : off and batched : off, counted in three ways that leave out different things: `make bench WHAT=hvo`.

    net time      natively, hosted, on one CPU, the lowest of seven runs in turn. The hosted machine makes every entry of a page table real with a system call; the time of these
                  calls and of its checks is measured (tests/host/simulate.c) and taken off. Left in: each call empties the host's caches and
                  TLB in part, which the kernel's code then pays for, and the direct map has pages of 4 KiB. Both count against modes that
                  remap. Left out: flushes of the TLB.
    model         callgrind over the same program, 900 pages. Only functions of mm/, kernel/ and arch/ count, by their sources, and
                  those of the C library that they call. D1 and LL misses are those of a model of two caches, 32 KiB and 8 MiB, which goes by
                  virtual addresses and has no prefetcher; the struct pages of 256 pages fit into the larger one. Left out: flushes, TLB misses, stores of PTEs and everything that happens in parallel.
    -icount       the instructions of the real kernel in QEMU, flushes and interrupts included. Left out: what an instruction waits for. A
                  store that misses every cache counts as much as an addition, and a `rep` instruction counts once for each repetition.

The measured part is pool_grow(). The state of the memory before it is that of bench=hvo (hvo_bench.c). Expected from bytes alone: `off` writes
32 KiB of struct pages for each page of 2 MiB, `on` a line of 8 PTEs and, unless the page is huge already, a head frame of 4 KiB.
"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/report"), str(ROOT / "tests/qemu")]

import callgrind  # noqa: E402
from callgrind import PROFILE, VALGRIND, Failed, passed  # noqa: E402
from machine import Machine, command  # noqa: E402
from records import values_of  # noqa: E402

SOURCES = ("fresh", "recycled", "again")
MODES = ("off", "batched", "on")
FIGURES = {"net_ns": "net time, ns", "instructions": "model: instructions", "d1_misses": "model: D1 misses",
           "ll_misses": "model: LL misses", "icount": "-icount: instructions"}
BY_BYTES = {"fresh": "0.15", "recycled": "0.50", "again": "0.05"}
# With most other numbers a block of metadata memory stays in a mapped section, and memory cannot be reset between runs of batched.
PAGES = 900
TIMED_PAGES, RUNS, MEM, SECONDS = 2000, 7, "3G", 300
MEASURED = "pool_grow"
CACHES = "--I1=32768,8,64 --D1=32768,8,64 --LL=8388608,16,64"  # bytes, ways, bytes of a line


def legs_of(argv):
    """Records of bench=hvo that grow a pool."""
    return [record for record in values_of(passed(argv, SECONDS), "hvo") if (record["op"], record["size"]) == ("alloc", "2M")]


def per_page(records, value):
    """{(source, mode): the lowest value(record) of all runs, for each page}. Other work on the host only makes a time longer."""
    found = {}
    for r in records:
        if r["done"] and r["threads"] == 1:
            found.setdefault((r["source"], r["mode"]), []).append(value(r) / r["done"])
    return {key: min(values) for key, values in found.items()}


def hosted(machine, source, modes, pages, mem, runs=1):
    words = f'bench="hvo source={source} modes={modes} pages={pages} runs={runs}"'
    return [machine, "-x", "-c", "1", "-m", mem, "-k", words]


def net_times(machine):
    records = legs_of(hosted(machine, "all", ",".join(MODES), TIMED_PAGES, "6G", RUNS))
    return {key: {"net_ns": ns} for key, ns in per_page(records, lambda r: r["ns"] - r["simulated_ns"]).items()}


def instructions(kernel):
    """In QEMU with -icount, one ns of the guest is one instruction."""
    words = f'bench="hvo source=all modes={",".join(MODES)} pages={PAGES}"'
    records = legs_of(command(Machine("pvh", 1, MEM, 1, cmdline=words, accel="icount"), kernel))
    return {key: {"icount": count} for key, count in per_page(records, lambda r: r["ns"]).items()}


def events_of(text):
    profile, known = callgrind.parse(text), {}
    if MEASURED not in {name for name, _ in [*profile.own, *(caller for caller, _ in profile.calls)]}:
        raise Failed(f"the profile does not have {MEASURED}(): valgrind read no symbols")

    def source(function):
        return callgrind.source_of(function[1], known)

    counts = profile.total(lambda function: source(function).startswith(callgrind.OURS), lambda function: not source(function))
    return {
        "instructions": counts["Ir"],
        "d1_misses": counts["D1mr"] + counts["D1mw"],
        "ll_misses": counts["DLmr"] + counts["DLmw"],
    }


def modelled(machine, source, mode):
    """Events per page of the last pool_grow() of a run, which is the measured one."""
    with tempfile.TemporaryDirectory() as folder:
        valgrind = [*f"{VALGRIND} {CACHES} {PROFILE}".split(), f"--callgrind-out-file={folder}/out"]
        valgrind += [f"--zero-before={MEASURED}", f"--dump-after={MEASURED}"]
        (leg,) = legs_of(valgrind + hosted(machine, source, mode, PAGES, MEM))
        dumps = callgrind.dumps_in(folder)
    if not dumps or leg["source"] != source:
        raise Failed(f"{MEASURED}() was not profiled, {source}, {mode}")
    return {name: count / leg["done"] for name, count in events_of(dumps[-1]).items()}


def ratios(figures, source, mode):
    off, other = figures[source, "off"], figures[source, mode]
    return {name: other[name] / off[name] if off[name] else float("inf") for name in FIGURES}


def table(figures):
    lines = [f"  {'memory':<9} {'a page, growing a pool':<22} {'off':>9} {'batched : off':>14} {'on : off':>9} {'by bytes':>9}"]
    for source in SOURCES:
        batched, on = ratios(figures, source, "batched"), ratios(figures, source, "on")
        for name, title in FIGURES.items():
            off = figures[source, "off"][name]
            lines.append(f"  {source:<9} {title:<22} {off:9,.1f} {batched[name]:14.2f} {on[name]:9.2f} {BY_BYTES[source]:>9}")
    return lines


def disagreeing(figures):
    """{(source, figure): ratio} where `on` does not cost less than `off`."""
    return {(source, name): ratio for source in SOURCES for name, ratio in ratios(figures, source, "on").items() if ratio >= 1}


def record_of(figures, source, mode):
    words = " ".join(f"{name}={figures[source, mode][name]:.1f}" for name in FIGURES)
    return f"BENCH hvo_ways source={source} mode={mode} pages={PAGES} {words}"


def measured(build):
    machine = str(build / "host/native/ashlar-host")
    figures = {(source, mode): modelled(machine, source, mode) for source in SOURCES for mode in MODES}
    for way in (net_times(machine), instructions(build / "ashlar.elf")):
        for key in figures:
            if key not in way:
                raise Failed(f"no figures for {key}")
            figures[key].update(way[key])
    return figures


def measure(build):
    """Print the table, its records and what disagrees. A time alone may be the noise of a busy host."""
    figures = measured(build)
    print("Growing a pool of 2 MiB pages, counted in three ways (Kravetz, \"Batch hugetlb vmemmap modification operations\", 2023-09)\n")
    print(*table(figures), "", __doc__.split("\n\n", 1)[1], sep="\n")
    print(*(record_of(figures, source, mode) for source in SOURCES for mode in MODES), sep="\n")
    against = disagreeing(figures)
    for (source, name), ratio in against.items():
        print(f"hvo_ways: on does not cost less than off: {source}, {FIGURES[name]}: {ratio:.2f}")
    return all(name == "net_ns" for _, name in against)


if __name__ == "__main__":
    sys.exit(callgrind.main("Count what HVO costs in three ways.", measure))
