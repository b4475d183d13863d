"""Placement by GiB: a long trace of requests on both placements, and what can be had then (tests/bench/gigablock_bench.c)."""

import pictures
import words
from paper import Figure, Heading
from pictures import Series
from records import of_kind
from rows import item, machine, median, memory, rows_of, runs, table

COLOUR = {"by-block": "orange", "by-GiB": "blue"}
KEYS = {"machine": machine, "memory": memory, "operations": item("ops")}


def placement(record):
    return record.get("placement") or f"Linux {record['kernel'].partition('-')[0]}"


def counted(value, scale=1.0):
    """The column of a figure that Linux may not have."""
    cell = median(value, scale)
    return lambda row: "-" if value(row.last) is None else cell(row)


COLUMNS = {
    "tainted before": counted(item("before", None)),
    "GiB tainted": counted(item("tainted", None)),
    "the least": counted(item("least", None)),
    "GiB clean": counted(item("clean", None)),
    "1 GiB pages at once": counted(item("giga_free", None)),
    "with moving": counted(item("giga", None)),
    "frames moved for them": counted(item("giga_moved", None)),
    "the least frames": counted(item("giga_least", None)),
    "requests": counted(item("requests", None)),
    "without memory": counted(item("failed", None)),
    "trace s": median(lambda record: record.get("age_ns") or record["ns"], 1e-9),
    "of by-block": lambda row: words.spread(row.ratio(item("age_ns"), placement="by-block"), unit="x") if row.last.get("age_ns") else "-",
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
    records = of_kind(captures, "gigablock") + of_kind(captures, "linux", what="gigablock")
    if not records:
        return
    paper.add(Heading("Placement by GiB: memory that stays contiguous"))
    paper.text(words.prose("gigablock"))
    rows = rows_of(records, **KEYS, placement=placement)
    paper.add(table("After the trace", rows, COLUMNS, ours=lambda row: row.key["placement"] == "by-GiB", left=2))
    series = rows_of(of_kind(captures, "gigablock_time"), **KEYS)
    paper.add(*map(over_time, range(1, len(series) + 1), series))
