"""The measurements of `make bench WHAT=sweep`: the figure of each benchmark against the switch that was varied."""

import re

import pictures
import words
from paper import Figure, Heading, Table, Text
from pictures import Series
from records import Spread

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def measures(capture):
    """{(what, unit): [values]} from one run of any benchmark."""
    found = {}

    def add(what, unit, value):
        found.setdefault((what, unit), []).append(value)

    for r in capture.records:
        if r.kind == "hvo" and r["done"]:
            add(f"hvo {r['mode']} {r['op']}", "us/page", r["ns"] / r["done"] / 1000)
        elif r.kind == "memmap":
            add(
                f"memmap {r['mode']}" + (f" {r['threads']}" if r["mode"] == "parallel" else ""),
                "ns/page",
                r["ns"] / r["pages"],
            )
        elif r.kind == "clear":
            add(f"clear {r['size']} {r['mode']} {r['insn']}", "GB/s", r["bytes"] / r["ns"])
        elif r.kind == "fault":
            add(f"fault {r['size']} {r['mode']} {r['cpus']} CPUs", "us/fault", r["ns"] / r["faults"] / 1000)
        elif r.kind == "pcp":
            add(f"pcp type_cache={r['type_cache']}", "ns/page", r["ns_alloc"] + r["ns_free"])
        elif r.kind == "contig":
            add(f"contig {r['memory']} {r['mode']}", "ms/page", r["ns_mean"] / 1e6)
        elif r.kind == "alloc" and not r.get("style"):
            add(f"alloc {r.get('test')} {r.get('op')} {r['threads']}", "ns", r["ns"])
    return found


def number(text):
    """64M as a number, or None."""
    match = re.fullmatch(r"(\d+)([KMGT]?)", text)
    return int(match[1]) * UNITS[match[2]] if match else None


def order(text):
    value = number(text)
    return (value is None, value or 0, text)


def picture(key, unit, rows, values):
    """Lines if the switch is a number, bars if it is a word; the first six at most."""
    name = f"sweep-{re.sub(r'[^a-z]+', '-', unit.lower())}"
    shown = list(rows.items())[:6]
    numbers = [number(value) for value in values]
    if None in numbers:
        series = [
            (what, list(pictures.COLOURS)[i], [row[v].median if v in row else None for v in values])
            for i, (what, row) in enumerate(shown)
        ]
        return Figure(name, pictures.bars(name, values, series, unit), f"{unit} against {key}.")
    series = [Series(what, [(number(v), s.median, s.low, s.high) for v, s in row.items()]) for what, row in shown]
    return Figure(
        name,
        pictures.lines(name, series, key, unit, logx=2, logy=10, xticks=numbers),
        f"{unit} against {key}: medians and range.",
    )


def section(paper, captures):
    swept = [c for c in captures if "sweep" in c.facts]
    if not swept:
        return
    key = swept[0].facts["sweep"].partition("=")[0]
    values = sorted({c.facts["sweep"].partition("=")[2] for c in swept}, key=order)
    units = {}
    for capture in swept:
        for (what, unit), measured in measures(capture).items():
            units.setdefault(unit, {}).setdefault(what, {})[capture.facts["sweep"].partition("=")[2]] = Spread(measured)
    paper.add(Heading(f"Sweep: {key} = {', '.join(values)}"))
    if not units:
        paper.add(Text("No figures: every run failed before it had measured anything.", "bad"))
    for unit, rows in units.items():
        cells = [[what, *(words.spread(row[v]) if v in row else "-" for v in values)] for what, row in rows.items()]
        paper.add(Table([unit, *values], cells, f"{unit} against {key}: median and range of the runs"))
        paper.add(picture(key, unit, rows, values))
