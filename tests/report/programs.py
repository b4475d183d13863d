"""The same programs on Linux and on Ashlar: the measurements of `make bench WHAT=programs` (consoles programs-*)."""

import math
import re

import words
from paper import Heading, Text
from peer import ordered, series_of
from records import of_kind
from rows import item, median, rows_of, table

# Rows that mostly fault, map and allocate. The others compute, or call the kernel for something else.
HEAVY = (
    *("page_fault1", "page_fault1-small", "page_fault2", "page_fault3", "touch", "touch-4k", "unmap", "unmap-4k"),
    *("mmap1", "brk1", "malloc1", "larson", "alloc-test", "mimalloc-stress"),
)


def cpus_of(capture):
    """The number of CPUs in the name of one of these consoles, or None."""
    match = re.match(r"programs-(?:icount-)?(\d{1,4})-", capture.name)
    return int(match[1]) if match else None


def side_of(record):
    linux = of_kind([record.capture], "linux")
    return f"Linux {series_of(linux[0])}" if linux else "Ashlar"


def rows_of_programs(captures, counted, kind):
    """A Row for each program and number of CPUs."""
    records = of_kind([c for c in captures if cpus_of(c) and (c.where == "icount") == counted], kind)
    return rows_of(sorted(records, key=lambda r: (r["name"], cpus_of(r.capture))), program=item("name"), CPUs=lambda r: cpus_of(r.capture))


def per_op(record):
    return record["ns"] / record.get("ops", 1)


def kernels_of(rows):
    sides = {side_of(r) for row in rows for r in row.records} - {"Ashlar"}
    return sorted(sides, key=lambda side: ordered(side.split()[-1]), reverse=True)


def ratio_of(row, side):
    linux, ours = (row.spread(per_op, side_of, name) for name in (side, "Ashlar"))
    return linux.median / ours.median if linux and ours else None


def ratio_to_ashlar(side):
    return lambda row: words.times(ratio_of(row, side))


def mean_of(ratios):
    known = [ratio for ratio in ratios if ratio]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None


def mean_rows(rows, kernels):
    found = []
    for cpus in sorted({row.key["CPUs"] for row in rows}):
        heavy = [row for row in rows if row.key["CPUs"] == cpus and row.key["program"] in HEAVY]
        if heavy:
            means = [words.times(mean_of(ratio_of(row, side) for row in heavy)) for side in kernels]
            found.append([f"geometric mean of {len(heavy)} rows that fault, map or allocate", cpus, *["-"] * (len(kernels) + 1), *means])
    return found


def programs_table(captures, counted):
    rows = rows_of_programs(captures, counted, "program")
    caption = f"Programs: {'instructions' if counted else 'time'} an operation; the means first"
    return table(caption, rows, columns_of(rows, counted, " an operation"), mean_rows(rows, kernels_of(rows)))


def measured_table(captures, counted):
    """A program of the user, from its loading to its end. Ashlar prints this record for each program; Linux for this one."""
    rows = rows_of_programs(captures, counted, "program_run")
    rows = [row for row in rows if {"Ashlar"} < {side_of(record) for record in row.records}]
    caption = f"A program as a whole, loading included: {'instructions' if counted else 'time'}"
    return table(caption, rows, columns_of(rows, counted, ""))


def columns_of(rows, counted, of):
    kernels, unit = kernels_of(rows), "instructions" if counted else "ns"
    columns = {f"{side}, {unit}{of}": median(per_op, 1, side_of, side) for side in (*kernels, "Ashlar")}
    return columns | {f"{side} : Ashlar": ratio_to_ashlar(side) for side in kernels}


def section(paper, captures):
    tables = [make(captures, counted) for make in (measured_table, programs_table) for counted in (False, True)]
    if any(tables):
        paper.add(Heading("The same programs on Linux and on Ashlar"), Text(words.prose("programs"), "note"), *tables)
