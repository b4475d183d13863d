"""The memmap series: making all struct pages with 0 to all CPUs of a node.

A row of ours is put together from two kinds of runs. bench=memmap makes the struct pages again and again in one boot, in memory that is
already there. It gives `memmap init` and the warm figure. Machines that are booted many times (the legs memmap-boots) give `kernel boot`
and, because each of them meets its memory for the first time, the figure at first touch. A speedup is printed only if it is beyond the
noise (words.saved).
"""

import seeds
import words
from paper import Heading, Table
from records import Spread, of_kind
from rows import item, last, machine, median, place, ram, rows_of, table

INIT = 6  # index in a published row: ms of deferred init
MEANS = {"serial": "before", "parallel": "after", "eager": "ours, all at boot", "lazy": "ours"}
SERIAL, PARALLEL, EAGER, LAZY = WAYS = [f"{mode}: {means}" for mode, means in MEANS.items()]


def machine_of(record):
    return f"{place(record)}, {ram(record)}"


def way(record):
    return WAYS[list(MEANS).index(record["mode" if record.kind == "memmap" else "memmap"])]


def asked(record):
    """The share of the CPUs, or the number of threads, that a way was asked for; serial and lazy need none."""
    return str(record.get("asked" if record.kind == "memmap" else "memmap_asked", "")) if way(record) in (PARALLEL, EAGER) else ""


def figure_of(values):
    """Median and deviation of some figures, as words.saved() and words.with_sd() take them."""
    return (Spread(values).median, Spread(values).sd) if values else (None, 0)


def boots(row):
    return [record for record in row.records if record.kind == "boot"]


def bench(row):
    """The last record of the benchmark, or None."""
    return next((record for record in reversed(row.records) if record.kind == "memmap"), None)


def boot_ms(row):
    return figure_of([boot["ns_to_ready"] / 1e6 for boot in boots(row)])


def init_ms(row):
    return (bench(row)["ns"] / 1e6, bench(row)["ns_sd"] / 1e6) if bench(row) else (None, 0)


def first_touch(row):
    """ns per struct page in memory that nobody touched before, over boots, or the one time in the bench."""
    of_boots = [b["memmap_ns"] / b["memmap_pages"] for b in boots(row) if b.get("memmap_pages") and b.get("memmap_ns")]
    if not of_boots and bench(row) and bench(row)["ns_first"]:
        return words.figure(bench(row)["ns_first"] / bench(row)["pages"])
    return words.with_sd(*figure_of(of_boots)) if len(of_boots) > 1 else words.figure(figure_of(of_boots)[0])


def base_of(row):
    return row.beside(way=SERIAL, asked="")


def ways_of(captures):
    """The rows of each machine that has measured the path before the series and the one after it. Boots count only from consoles with many
    boots in turn, and without a pool (fill.py)."""
    many = of_kind([c for c in captures if c.boots > 1 and not c.name.startswith("pools")], "boot")
    many = [boot for boot in many if boot.get("memmap") in MEANS and not boot.get("pool_pages") and not boot.get("pool_1g_pages")]
    warm = [record for record in of_kind(captures, "memmap") if record["mode"] in MEANS and not record.is_cold]
    rows = rows_of(warm + many, machine=machine_of, way=way, asked=asked)
    after = {row.key["machine"] for row in rows if row.key["way"] == PARALLEL and bench(row)}
    return sorted((row for row in rows if row.key["machine"] in after and base_of(row) and bench(base_of(row))),
                  key=lambda row: (row.key["machine"], WAYS.index(row.key["way"])))  # fmt: skip


def threads(row):
    return 0 if row.key["way"] == SERIAL else bench(row)["threads"] if bench(row) else row.last.get("memmap_threads", "-")


def speedup(measured):
    return lambda row: "--" if row.key["way"] == SERIAL else words.saved(*measured(base_of(row)), *measured(row))


def published(number):
    """What the published machines saved, lowest to highest, with the row's share or with one thread: of kernel boot (2), memmap init (5)."""

    def cell(row):
        rows = [theirs for *_, of_machine in seeds.MEMMAP for theirs in of_machine[1:]]
        found = [theirs[number] for theirs in rows if f"{theirs[0]}%" == row.key["asked"] or theirs[1] == threads(row) == 1]
        return f"{min(found):.1f} to {max(found):.1f} %" if found and row.key["way"] == PARALLEL else "-"

    return cell


COLUMNS = {
    "threads": threads,
    "kernel boot: speedup": speedup(boot_ms),
    "boot ms (sd)": lambda row: words.with_sd(*boot_ms(row)),
    "published boot": published(2),
    "memmap init: speedup": speedup(init_ms),
    "init ms (sd)": lambda row: words.with_sd(*init_ms(row)) if bench(row) else "nothing made",
    "published init": published(5),
    "ns per struct page: warm": lambda row: words.figure(bench(row) and bench(row)["ns"] / bench(row)["pages"]),
    "first touch": first_touch,
    "boots / runs": lambda row: f"{len(boots(row))} / {bench(row)['runs'] if bench(row) else 0}",
}


def published_full():
    rows = []
    for name, nodes, gib, of_machine in seeds.MEMMAP:
        for percent, count, boot_saved, boot, boot_sd, init_saved, init, init_sd in of_machine:
            first = percent == 0
            rows.append([
                name if first else "", f"{nodes} x {gib} GiB" if first else "", "" if first else f"{percent}%", count,
                "--" if first else f"{boot_saved:.1f} %", f"{boot:.1f} ({boot_sd:.1f})",
                "--" if first else f"{init_saved:.1f} %", f"{init:.1f} ({init_sd:.1f})",
            ])  # fmt: skip
    head = ["published on", "memory", "node%", "threads", "kernel boot: speedup", "ms (sd)", "deferred init: speedup", "ms (sd)"]
    return Table(head, rows, "Published: all rows", left=2)


PUT_OFF = {
    "open": ("opening all sections: no struct page is written", "ns per page opened"),
    "all": ("then making all struct pages after all", "ns per struct page"),
}


def lazy(captures):
    """The work that lazy puts off. Opening is not making, so each has a row and a unit of its own."""
    columns = {
        "memory": lambda row: words.size(row.last["pages"] * 4096),
        "ms (sd)": lambda row: words.with_sd(row.last["ns"] / 1e6, row.last["ns_sd"] / 1e6),
        "unit": lambda row: PUT_OFF[row.last["what"]][1],
        "warm": lambda row: words.figure(row.last["ns"] / row.last["pages"]),
        "first touch": lambda row: words.figure(row.last["ns_first"] / row.last["pages"]) if row.last["ns_first"] else "-",
        "runs": last("runs"),
    }
    records = [r for r in of_kind(captures, "memmap_lazy") if r["what"] in PUT_OFF]
    rows = rows_of(records, machine=place, **{"one CPU": lambda r: PUT_OFF[r["what"]][0]})
    return table("Ours, lazy: nothing is made at boot; what it costs later", rows, columns, left=2)


def limit(captures):
    """How often many threads reach what the machine allowed in the same run."""
    columns = {
        "threads : one": median(item("gain")),
        "limit : one": median(item("limit")),
        "good runs": lambda row: f"{sum(1 for r in row.records if r['good'])} of {len(row.records)}",
    }
    title = "Threads beside the limit: a run is good at 0.9 times for each thread, or within 5% of what a clear gains in it"
    return table(title, rows_of(of_kind(captures, "memmap_limit"), machine=machine, threads=item("threads")), columns)


def best_of(rows, way_name):
    """ns per struct page of a way's fastest row: the median, and the range of its runs if the record has it."""
    records = (bench(row) for row in rows if row.key["way"] == way_name and bench(row))
    best = min(records, key=lambda r: r["ns"] / r["pages"], default={})
    figures = [best[key] / best["pages"] for key in ("ns", "ns_min", "ns_max") if best and best.get(key)]
    pattern = "{} ({} to {})" if len(figures) == 3 else "{}" if figures else "-"
    return pattern.format(*map(words.figure, figures))


def headline(captures):
    rows = ways_of(captures)
    bases = (row for row in rows if row.key["way"] == SERIAL)
    base = max(bases, key=lambda row: (row.last.capture.where != "tcg", bench(row)["pages"]), default=None)
    if not base:
        return None
    _, _, gib, of_machine = seeds.MEMMAP[0]
    theirs = (words.figure(row[INIT] * 1e6 / (gib * 2**30 / 4096)) for row in (of_machine[0], of_machine[-1]))
    figures = (best_of([row for row in rows if row.key["machine"] == base.key["machine"]], name) for name in (SERIAL, PARALLEL, EAGER))
    return ["Memmap series, make all struct pages: ns per page", *theirs, *figures, place(base.last), bench(base)["runs"]]


def section(paper, captures):
    found = ways_of(captures)
    if not found:
        return
    paper.add(Heading("Memmap series: all struct pages are made at boot"))
    paper.text(words.prose("memmap"))
    caption = "Ours: the slowest node decides; medians, deviations of a sample"
    paper.add(table(caption, found, COLUMNS, ours=lambda row: row.key["way"] in (EAGER, LAZY), left=3), lazy(captures))
    paper.text(words.prose("memmap.rows"))
    paper.note(words.prose("memmap.not-comparable"))
    paper.add(published_full(), limit(captures))
