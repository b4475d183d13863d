"""The clearing series: clearing huge pages, in steps of 4 KiB and in whole extents, and faulting them in.

A comparison changes one thing: the pieces that an instruction is given. Published rates are rates of demand faults, so they stand only in
the table of faults. Events per page come from the CPU's counters where it has them.
"""

import seeds
import words
from paper import Heading, Table, Text
from records import of_kind
from rows import item, machine, median, rows_of, runs, table

BYTES = {"4K": 4096, "2M": 2 << 20, "1G": 1 << 30}
DEFAULT = {"default": "the default", "all-cpus": "the default, all CPUs"}  # the choice of the kernel, compared with nothing


def column(record):
    """The pieces in which a page is cleared: page, multi (extents of 32 MiB at most), whole (1 GiB as one instruction), or plain."""
    if record["mode"] == "multi" and record["size"] == "1G" and record.get("extent") == "whole":
        return "whole"
    return record["mode"]


def insn_of(record):
    insn = str(record.get("insn", "default"))
    return "a plain non-temporal fill" if record.get("mode") == "plain" else DEFAULT.get(insn, f"`{insn}`")


def cleared(record):
    return record["bytes"] / record["ns"]


def brought(record):
    return record["pages"] * BYTES.get(record["size"], 0) / record["ns"]


def change(way, value):
    """The column with what these pieces gain over steps of 4 KiB."""

    def cell(row):
        page, other = row.spread(value, column, "page"), row.spread(value, column, way)
        return words.percent(other.median, page.median) if page and other and not row.is_cold else "-"

    return cell


def rates(caption, records, value, published=(), **keys):
    """A row for each instruction, with its pieces side by side."""
    columns = {
        "steps of 4 KiB GB/s": median(value, 1, column, "page"),
        "extents GB/s": median(value, 1, column, "multi"),
        "change": change("multi", value),
        "as one GB/s": median(value, 1, column, "whole"),
        "change as one": change("whole", value),
        "plain GB/s": median(value, 1, column, "plain"),
    }
    rows = rows_of(records, machine=machine, instruction=insn_of, size=item("size"), **keys)
    return table(caption, rows, columns, published, lambda row: row.key["instruction"] in DEFAULT.values(), left=3)


def published_faults():
    for name, size, before, after in seeds.CLEAR:
        extents, whole = (after, None) if size == "2M" else (None, after)
        cells = [words.figure(extents), words.percent(extents, before), words.figure(whole), words.percent(whole, before), "-"]
        yield [name, "published, `rep stosb`", size, 1, words.figure(before), *cells]


def fault_rates(captures):
    caption = "Touching a region of huge pages, page by page"
    return rates(caption, of_kind(captures, "fault"), brought, list(published_faults()), CPUs=item("cpus"))


def fault_costs(captures):
    chosen = [r for r in of_kind(captures, "fault") if r.get("insn", "default") == "default"]
    columns = {
        "runs": runs,
        "us a fault": median(lambda r: r["ns"] / r["faults"] / 1000),
        "rounds to unmap all": lambda row: max(r["unmap_rounds"] for r in row.records),
    }
    rows = rows_of(chosen, machine=machine, size=item("size"), CPUs=item("cpus"), pages=item("pages"))
    return table("A fault by default", rows, columns, left=2)


# ---- several CPUs ----


def by_all_cpus(captures):
    """The default by all CPUs beside the best stream of the same run, in which each CPU has one instruction over its part of the page."""
    timed = [r for r in of_kind(captures, "clear") if r.get("median_ns") and r.get("cpu_ns") and not r.is_cold]
    streams = [r for r in timed if r["mode"] == "stream"]

    def run_of(record):
        return id(record.capture), record.boot, record["size"]

    def best(record):
        return min((r for r in streams if run_of(r) == run_of(record)), key=lambda r: r["median_ns"], default=None)

    def share(record):
        return best(record)["median_ns"] / record["median_ns"]

    columns = {
        "GB/s": median(lambda r: r["bytes"] / r["median_ns"]),
        "bandwidth GB/s": median(lambda r: r["bytes"] / best(r)["median_ns"]),
        "by": lambda row: f"`{best(row.last)['insn']}`",
        "of bandwidth": median(share),
        "CPU ms of all": median(item("cpu_ns"), 1e-6),
        "bandwidth's": median(lambda r: best(r)["cpu_ns"], 1e-6),
        "runs": runs,
    }
    rows = rows_of([r for r in timed if r["insn"] == "all-cpus" and best(r)], machine=machine, size=item("size"), CPUs=item("threads"))
    return table("Clearing cold memory by all CPUs: medians of turns", rows, columns, left=2)


# ---- events ----

EVENTS = ("instructions", "branches", "branch_misses", "l1d_loads", "l1d_misses", "llc_loads", "llc_misses", "dtlb_loads", "dtlb_misses")


def events_of(text):
    """"cycles:5,branches:2" as numbers; torn parts are left out."""
    pairs = (pair.partition(":") for pair in str(text).split(","))
    return {name: int(value) for name, _, value in pairs if value.isdigit() and len(value) < 20}


def counted_row(machine_name, what, size, events, pages, run="-"):
    ipc = words.ratio(events.get("instructions"), events.get("cycles"))
    counts = (words.figure(events[name] / pages) if name in events else "-" for name in EVENTS)
    return [machine_name, what, size, f"{pages:,}", run, words.figure(ipc), *counts]


def counted_table(captures):
    """Events per page: published, and from the CPU's counters."""
    rows = []
    names = {"page": "4K", "multi": "extents", "whole": "as one"}
    for r in of_kind(captures, "fault"):
        events = events_of(r.get("pmu", "none"))
        if events:
            what = f"`{r.get('insn', 'default')}`, {names.get(column(r), '')}"
            rows.append(counted_row(machine(r), what, r["size"], events, r["pages"], r.get("run", "-")))
    if not rows:
        return None
    published = []
    for name, size, *both in seeds.CLEAR_COUNTED:
        for when, events in zip(("before", "after"), both):
            published.append(counted_row(name, f"published, {when}", size, events, seeds.CLEAR_REGION // BYTES[size]))
    head = ["machine", "", "size", "pages", "run", "IPC", *(name.replace("_", " ") for name in EVENTS)]
    return Table(head, published + rows, "Events per huge page", left=3)


COUNTED = "Published: user and kernel of Linux, multiplexed, so to be read to one or two digits."


# ---- the section ----


def headline(captures):
    """The measure of the series, with its own instruction: demand faults by one CPU."""
    rows = rows_of(of_kind(captures, "fault", size="2M", cpus=1), where=lambda r: r.capture.where, insn=insn_of, pieces=column)
    found = {tuple(row.key.values()): row.spread(brought) for row in rows}
    where = next((w for w in words.WHERE if (w, "`erms`", "page") in found and (w, "`erms`", "multi") in found), None)
    if not where:
        return None
    ours = [words.spread(found.get((where, *way))) for way in (("`erms`", "page"), ("`erms`", "multi"), ("the default", "multi"))]
    return ["Clearing series, fault in 2 MiB pages, `rep stosb`: GB/s", *map(words.figure, seeds.CLEAR[2][2:]), *ours, words.WHERE[where], found[where, "`erms`", "multi"].runs]


def section(paper, captures):
    faults, counted = fault_rates(captures), counted_table(captures)
    alone = rates("Clearing alone: the same instruction in steps and in extents", of_kind(captures, "clear"), cleared)
    if not alone and not faults and not counted:
        return
    paper.add(Heading("Clearing series: huge pages are cleared"))
    paper.text(words.prose("clear"))
    if faults:
        paper.add(Heading("Faults: the series' own test", 3), faults)
        paper.note(words.prose("clear.faults"))
        paper.add(fault_costs(captures))
    if counted:
        paper.add(Heading("Counted", 3), counted, Text(COUNTED, "note"))
    if alone:
        paper.add(Heading("Clearing alone", 3), alone, by_all_cpus(captures))
        paper.note(words.prose("clear.alone"))
