"""Placement by GiB: a long trace of requests on both placements, and what can be had then (tests/bench/gigablock_bench.c)."""

import pictures
import words
from paper import Figure, Heading
from pictures import Series
from records import of_kind
from rows import item, machine, median, memory, rows_of, runs, table

COLOUR = {"by-block": "orange", "by-GiB": "blue"}
KEYS = {"machine": machine, "memory": memory, "operations": item("ops")}
COLUMNS = {
    "tainted before": median(item("before")),
    "GiB tainted": median(item("tainted")),
    "the least": median(item("least")),
    "GiB clean": median(item("clean")),
    "1 GiB pages at once": median(item("giga_free")),
    "with moving": median(item("giga")),
    "frames moved for them": median(item("giga_moved")),
    "the least frames": median(item("giga_least")),
    "requests": median(item("requests")),
    "without memory": median(item("failed")),
    "trace s": median(item("age_ns"), 1e-9),
    "of by-block": lambda row: words.spread(row.ratio(item("age_ns"), placement="by-block"), unit="x"),
    "runs": runs,
}


def over_time(number, row):
    series = []
    for way in rows_of(row.records, placement=item("placement")):
        name = way.key["placement"]
        for key, dashed in (("tainted", False), ("clean", True)):
            points = [(r["op"] / 1000, r[key]) for r in way.records]
            series.append(Series(f"{key}, {name}", points, COLOUR.get(name, "grey"), dashed))
    svg = pictures.lines(f"gigablock-{number}", series, "1,000 operations of the trace", "GiB", logy=0)
    where = f"{row.key['machine']}, {row.key['memory']}"
    return Figure(f"gigablock-{number}", svg, f"GiB with memory that cannot move, and whole GiB without, while the trace runs ({where}).")


def section(paper, captures):
    records = of_kind(captures, "gigablock")
    if not records:
        return
    paper.add(Heading("Placement by GiB: memory that stays contiguous"))
    paper.text(
        'van Riel, "1GB superpageblock memory allocation" RFC, 2026: fewer than 20 of 238 GiB tainted, and 50 pages of 1 GiB to be had. A GiB'
        " is tainted by memory that cannot be moved. The same requests on both placements; after them half of the page cache is dropped."
        " A clean GiB can be had as a page once its pages have moved."
    )
    rows = rows_of(records, **KEYS, placement=item("placement"))
    paper.add(table("After the trace", rows, COLUMNS, ours=lambda row: row.key["placement"] == "by-GiB", left=2))
    series = rows_of(of_kind(captures, "gigablock_time"), **KEYS)
    paper.add(*(figure for figure in map(over_time, range(1, len(series) + 1), series) if figure.svg))
