"""The same programs on Linux and on Ashlar: the measurements of `make bench WHAT=programs` (consoles programs-*)."""

import math
import re

import words
from paper import Heading, Table, Text
from peer import ordered, series_of
from records import Spread, of_kind

# Rows that mostly fault, map and allocate. The others compute, or call the kernel for something else.
HEAVY = (
    *("page_fault1", "page_fault1-small", "page_fault2", "page_fault3", "touch", "touch-4k", "unmap", "unmap-4k"),
    *("mmap1", "brk1", "malloc1", "larson", "xmalloc-test", "sh8bench", "alloc-test", "mimalloc-stress"),
)
NOTE = (
    "The same static ELF file, glibc's allocator in it, on both sides, with as many threads as CPUs (touch, unmap: one;"
    " futex-turns: two). Linux has mitigations=off, as Ashlar has no mitigations, and else its distribution's settings, huge"
    " pages among them. On Ashlar a thread is a CPU and there is no scheduler and no tick. Linux charges and accounts each"
    " page. Operations: a call, 4 KiB touched or unmapped, a pair of mmap() and munmap(), an element, an object."
    " A ratio above 1 means that Linux takes longer. The row `loop` runs no kernel, so its ratio should be 1: in times it shows"
    " how even the host was, and in instructions that the clock counts them. Of the instructions of a first touch of 4 KiB, 4096 are"
    " the clear's on both sides (rep stosb counts each byte)."
)


def cpus_of(capture):
    """The number of CPUs in the name of one of these consoles, or None."""
    match = re.match(r"programs-(?:icount-)?(\d{1,4})-", capture.name)
    return int(match[1]) if match else None


def side_of(capture):
    """ "Linux 7.3" or "Ashlar"."""
    linux = of_kind([capture], "linux")
    return f"Linux {series_of(linux[0])}" if linux else "Ashlar"


def times_of(captures, counted):
    """{(name, CPUs): {side: Spread of ns an operation}}."""
    found = {}
    for capture in captures:
        if not cpus_of(capture) or (capture.where == "icount") != counted:
            continue
        for r in of_kind([capture], "program"):
            sides = found.setdefault((r["name"], cpus_of(capture)), {})
            sides.setdefault(side_of(capture), []).append(r["ns"] / r["ops"])
    return {key: {side: Spread(values) for side, values in sides.items()} for key, sides in found.items()}


def kernels_of(found):
    """The kernels of Linux, the newest first."""
    sides = {side for row in found.values() for side in row if side.startswith("Linux")}
    return sorted(sides, key=lambda side: ordered(side.split()[-1]), reverse=True)


def ratio_of(row, side):
    return row[side].median / row["Ashlar"].median if side in row and "Ashlar" in row else None


def mean_of(ratios):
    """The geometric mean, or None."""
    known = [ratio for ratio in ratios if ratio]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None


def rows_of(found, kernels):
    rows = []
    for (name, cpus), row in sorted(found.items()):
        cells = [words.spread(row[side]) if side in row else "-" for side in (*kernels, "Ashlar")]
        rows.append([name, cpus, *cells, *(words.times(ratio_of(row, side)) for side in kernels)])
    return rows


def mean_rows(found, kernels):
    rows = []
    for cpus in sorted({cpus for _, cpus in found}):
        heavy = [row for (name, count), row in found.items() if count == cpus and name in HEAVY]
        if not heavy:
            continue
        means = [words.times(mean_of(ratio_of(row, side) for row in heavy)) for side in kernels]
        rows.append([f"geometric mean of {len(heavy)} rows that fault, map or allocate", cpus, *["-"] * (len(kernels) + 1), *means])
    return rows


def table(captures, counted):
    found = times_of(captures, counted)
    if not found:
        return None
    kernels = kernels_of(found)
    rows = rows_of(found, kernels)
    means = mean_rows(found, kernels)
    ours = tuple(range(len(rows), len(rows) + len(means)))
    unit = "instructions" if counted else "ns"
    head = ["program", "CPUs", *(f"{side}, {unit} an operation" for side in kernels), "Ashlar", *(f"{side} : Ashlar" for side in kernels)]
    return Table(head, rows + means, f"Programs: {'instructions' if counted else 'time'} an operation", ours=ours)


def section(paper, captures):
    tables = [table(captures, counted) for counted in (False, True)]
    if any(tables):
        paper.add(Heading("The same programs on Linux and on Ashlar"), Text(NOTE + words.EMULATED, "note"), *tables)
