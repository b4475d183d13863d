"""The memmap series: making all struct pages with 0 to all CPUs of a node.

A row of ours is put together from two kinds of runs. bench=memmap makes the struct pages again and again in one boot, in memory that is
already there. It gives `memmap init` and the warm figure. Machines that are booted many times (the legs memmap-boots) give `kernel boot`
and, because each of them meets its memory for the first time, the figure at first touch. A speedup is printed only if it is beyond the
noise (words.saved).
"""

from dataclasses import dataclass, field

import seeds
import words
from paper import Heading, Table
from records import Spread, of_kind
from rows import item, last, machine, median, rows_of, table

INIT = 6  # index in a published row: ms of deferred init
SERIAL = "serial", "0"
WAYS = ("serial", "parallel", "eager")
MEANS = {"serial": "before", "parallel": "after", "eager": "ours, all at boot", "lazy": "ours"}


def machine_of(record):
    facts = record.capture.facts
    return record.capture.where, facts.get("cpus", "?"), facts.get("ram_bytes", 0)


def figure_of(values):
    """Median and deviation of some figures, as words.saved() and words.with_sd() take them."""
    return (Spread(values).median, Spread(values).sd) if values else (None, 0)


@dataclass
class Way:
    """What one machine measured of one way: the last record of the benchmark, and those of boots."""

    record: object = None
    boots: list = field(default_factory=list)

    @property
    def boot(self):
        return figure_of([boot["ns_to_ready"] / 1e6 for boot in self.boots])

    @property
    def init(self):
        return (self.record["ns"] / 1e6, self.record["ns_sd"] / 1e6) if self.record else (None, 0)

    @property
    def warm(self):
        return self.record and self.record["ns"] / self.record["pages"]

    @property
    def first_touch(self):
        """ns per struct page in memory that nobody touched before, over boots, or the one time in the bench."""
        of_boots = [b["memmap_ns"] / b["memmap_pages"] for b in self.boots if b.get("memmap_pages") and b.get("memmap_ns")]
        if not of_boots and self.record and self.record["ns_first"]:
            return words.figure(self.record["ns_first"] / self.record["pages"])
        return words.with_sd(*figure_of(of_boots)) if len(of_boots) > 1 else words.figure(figure_of(of_boots)[0])


def machines(captures):
    """{(where, cpus, ram): {(mode, threads or share asked for): Way}}. Boots count only from consoles with many boots in turn."""
    found = {}

    def way_of(record, mode, asked):
        key = mode, str(asked) if mode in ("parallel", "eager") else "0" if mode == "serial" else ""
        return found.setdefault(machine_of(record), {}).setdefault(key, Way())

    for record in (r for r in of_kind(captures, "memmap") if not r.is_cold):
        way_of(record, record["mode"], record.get("asked", "")).record = record
    for record in of_kind([c for c in captures if c.boots > 1 and not c.name.startswith("pools")], "boot"):
        if record.get("memmap") in MEANS and not record.get("pool_pages") and not record.get("pool_1g_pages"):  # else fill.py's
            way_of(record, record["memmap"], record.get("memmap_asked", "")).boots.append(record)
    return {
        key: ways for key, ways in found.items()
        if ways.get(SERIAL, Way()).record and any(mode == "parallel" and way.record for (mode, _), way in ways.items())
    }


def best_of(ways, mode):
    """ns per struct page of a mode's fastest row: the median, and the range of its runs if the record has it."""
    records = (way.record for (name, _), way in ways.items() if name == mode and way.record)
    best = min(records, key=lambda r: r["ns"] / r["pages"], default={})
    figures = [best[key] / best["pages"] for key in ("ns", "ns_min", "ns_max") if best and best.get(key)]
    pattern = "{} ({} to {})" if len(figures) == 3 else "{}" if figures else "-"
    return pattern.format(*map(words.figure, figures))


def published(percent, threads):
    """(kernel boot, memmap init) saved in the published rows with this share or number of threads: lowest to highest of the machines."""
    found = ([], [])
    for _, _, _, table in seeds.MEMMAP:
        for row in table[1:]:
            if row[0] == percent or (threads == 1 and row[1] == 1):
                found[0].append(row[2])
                found[1].append(row[5])
    return [f"{min(values):.1f} to {max(values):.1f} %" if values else "-" for values in found]


def our_rows(ways):
    """The table of one machine, with its rows in the published order."""
    base = ways[SERIAL]
    for (mode, asked), way in sorted(ways.items(), key=lambda item: list(MEANS).index(item[0][0])):
        percent = int(asked[:-1]) if asked.endswith("%") else -1
        threads = way.record["threads"] if way.record else way.boots[0].get("memmap_threads", "-")
        theirs = published(percent, threads) if mode == "parallel" else ["-", "-"]
        saved = ["--", "--"] if way is base else [words.saved(*base.boot, *way.boot), words.saved(*base.init, *way.init)]
        made = words.with_sd(*way.init) if way.record else "nothing made"
        yield [
            f"{mode}: {MEANS[mode]}", asked if percent >= 0 else "", threads if mode != "serial" else 0,
            saved[0], words.with_sd(*way.boot), theirs[0], saved[1], made, theirs[1],
            words.figure(way.warm), way.first_touch, f"{len(way.boots)} / {way.record['runs'] if way.record else 0}",
        ]  # fmt: skip


HEAD = [
    *("way", "node%", "threads", "kernel boot: speedup", "ms (sd)", "published", "memmap init: speedup", "ms (sd)", "published"),
    *("ns per struct page: warm", "first touch", "boots / runs"),
]


def ours(found):
    for (where, cpus, ram), ways in found.items():
        body = list(our_rows(ways))
        mark = tuple(i for i, row in enumerate(body) if row[0].startswith(("eager", "lazy")))
        title = f"{words.place(where, cpus)}, {words.size(ram) if ram else '?'}: the slowest node decides; medians, deviations of a sample"
        yield Table(HEAD, body, title, left=1, ours=mark)


def published_full():
    rows = []
    for machine, nodes, gib, table in seeds.MEMMAP:
        for percent, threads, boot_saved, boot, boot_sd, init_saved, init, init_sd in table:
            first = percent == 0
            rows.append([
                machine if first else "", f"{nodes} x {gib} GiB" if first else "", "" if first else f"{percent}%", threads,
                "--" if first else f"{boot_saved:.1f} %", f"{boot:.1f} ({boot_sd:.1f})",
                "--" if first else f"{init_saved:.1f} %", f"{init:.1f} ({init_sd:.1f})",
            ])  # fmt: skip
    head = ["published on", "memory", "node%", "threads", "kernel boot: speedup", "ms (sd)", "deferred init: speedup", "ms (sd)"]
    return Table(head, rows, "Published: all rows", left=2)


LAZY = {
    "open": ("opening all sections: no struct page is written", "ns per page opened"),
    "all": ("then making all struct pages after all", "ns per struct page"),
}


def place(record):
    where, cpus, _ = machine_of(record)
    return words.place(where, cpus)


def lazy(captures):
    """The work that lazy puts off. Opening is not making, so each has a row and a unit of its own."""
    columns = {
        "memory": lambda row: words.size(row.last["pages"] * 4096),
        "ms (sd)": lambda row: words.with_sd(row.last["ns"] / 1e6, row.last["ns_sd"] / 1e6),
        "unit": lambda row: LAZY[row.last["what"]][1],
        "warm": lambda row: words.figure(row.last["ns"] / row.last["pages"]),
        "first touch": lambda row: words.figure(row.last["ns_first"] / row.last["pages"]) if row.last["ns_first"] else "-",
        "runs": last("runs"),
    }
    records = [r for r in of_kind(captures, "memmap_lazy") if r["what"] in LAZY]
    rows = rows_of(records, machine=place, **{"one CPU": lambda r: LAZY[r["what"]][0]})
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


def headline(captures):
    best = max(machines(captures).items(), key=lambda item: (item[0][0] != "tcg", item[1][SERIAL].record["pages"]), default=None)
    if not best:
        return None
    (where, cpus, _), ways = best
    _, _, gib, table = seeds.MEMMAP[0]
    theirs = (words.figure(row[INIT] * 1e6 / (gib * 2**30 / 4096)) for row in (table[0], table[-1]))
    figures = (best_of(ways, mode) for mode in WAYS)
    return ["Memmap series, make all struct pages: ns per page", *theirs, *figures, words.place(where, cpus), ways[SERIAL].record["runs"]]


def section(paper, captures):
    found = machines(captures)
    if not found:
        return
    paper.add(Heading("Memmap series: all struct pages are made at boot"))
    paper.text(
        'Jordan, "mm: parallelize deferred_init_memmap()", 2020-05: the CPUs of each node make its struct pages'
        " together. Ours, `lazy`, makes them when a block is first split, and boot does not depend on how much RAM"
        " there is; where all are wanted at boot, `eager` makes them."
    )
    paper.add(*ours(found), lazy(captures))
    paper.text(
        "Row 0 is the path before the series: no job, no chunks. Its work and that of the rows below it is the same,"
        " struct page by struct page, freed in pieces of 4 MiB as Linux does. Published speedups are the range of the"
        " six published machines for the same share of the CPUs. Where runs scatter more than they differ the cell says"
        " noise. First touch is of memory that the host had not backed."
    )
    paper.note(
        "Not comparable: Linux initialises fields and links free lists for each page, Ashlar writes 64 bytes;"
        " published machines have hundreds of GiB and a core for each thread, where a host with two cores cannot"
        " gain more than twice, and one that shares its memory bus with others less. Hosted, a struct page that is made"
        " later takes a system call for each frame, which no kernel does. " + words.EMULATED
    )
    paper.add(published_full(), limit(captures))
