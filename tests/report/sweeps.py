"""The measurements of `make bench WHAT=sweep`: the figure of each benchmark against the switch that was varied."""

import re

import pictures
from paper import Figure, Heading
from pictures import Series
from rows import item, median, rows_of, table

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
# kind: keys that tell its rows apart, unit, figure
MEASURES = {
    "hvo": (("mode", "op"), "us/page", lambda r: r["ns"] / r["done"] / 1000 if r["done"] else None),
    "memmap": (("mode", "threads"), "ns/page", lambda r: r["ns"] / r["pages"]),
    "clear": (("size", "mode", "insn"), "GB/s", lambda r: r["bytes"] / r["ns"]),
    "fault": (("size", "mode", "cpus"), "us/fault", lambda r: r["ns"] / r["faults"] / 1000),
    "pcp": (("type_cache",), "ns/page", lambda r: r["ns_alloc"] + r["ns_free"]),
    "contig": (("memory", "mode"), "ms/page", lambda r: r["ns_mean"] / 1e6),
    "alloc": (("test", "op", "threads"), "ns", item("ns")),
}


def swept_value(record):
    return record.capture.facts["sweep"].partition("=")[2]


def what(record):
    return " ".join([record.kind, *(str(record.get(key, "")) for key in MEASURES[record.kind][0])])


def figure(record):
    return MEASURES[record.kind][2](record)


def number(text):
    """64M as a number, or None."""
    match = re.fullmatch(r"(\d+)([KMGT]?)", text)
    return int(match[1]) * UNITS[match[2]] if match else None


def order(text):
    value = number(text)
    return (value is None, value or 0, text)


def picture(key, unit, rows, values):
    """Lines of the first six rows, if the switch is a number."""
    name = f"sweep-{re.sub(r'[^a-z]+', '-', unit.lower())}"
    if None in map(number, values):
        return None
    series = []
    for row in rows[:6]:
        spreads = [(number(value), row.spread(figure, swept_value, value)) for value in values]
        series.append(Series(row.key["what"], [(x, s.median, s.low, s.high) for x, s in spreads if s]))
    svg = pictures.lines(name, series, key, unit, logx=2, logy=10, xticks=list(map(number, values)))
    return Figure(name, svg, f"{unit} against {key}: medians and range.")


def section(paper, captures):
    swept = [c for c in captures if "sweep" in c.facts]
    if not swept:
        return
    key = swept[0].facts["sweep"].partition("=")[0]
    values = sorted({c.facts["sweep"].partition("=")[2] for c in swept}, key=order)
    records = [r for c in swept for r in c.records if r.kind in MEASURES and figure(r) is not None]
    paper.add(Heading(f"Sweep: {key} = {', '.join(values)}"))
    if not records:
        paper.text("No figures: every run failed before it had measured anything.", "bad")
    for unit in dict.fromkeys(MEASURES[r.kind][1] for r in records):
        rows = rows_of([r for r in records if MEASURES[r.kind][1] == unit], what=what)
        columns = {value: median(figure, 1, swept_value, value) for value in values}
        paper.add(table(f"{unit} against {key}: median and range of the runs", rows, columns), picture(key, unit, rows, values))
