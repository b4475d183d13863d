"""The clearing series: clearing huge pages, in steps of 4 KiB and in whole extents, and faulting them in.

A comparison changes one thing: the pieces that an instruction is given. Published rates are rates of demand faults, so they stand only in
the table of faults. Events per page come from the CPU's counters where it has them, and from a model (cachegrind.py).
"""

import pictures
import seeds
import words
from paper import Figure, Heading, Table, Text
from pictures import Series
from records import Spread, grouped, of_kind

SIZES = ("4K", "2M", "1G")
BYTES = {"4K": 4096, "2M": 2 << 20, "1G": 1 << 30}
EXTENT_BYTES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
NO_ROWS = ("default", "all-cpus")  # the default choice, which is compared with nothing


def column(record):
    """The pieces in which a page is cleared: page, multi (extents of 32 MiB at most), whole (1 GiB as one instruction), or plain."""
    if record["mode"] == "multi" and record["size"] == "1G" and record.get("extent") == "whole":
        return "whole"
    return record["mode"]


def spreads(records, value):
    """{(column, insn): Spread of `value`}."""
    found = {}
    for r in records:
        found.setdefault((column(r), str(r.get("insn", "default"))), []).append(value(r))
    return {key: Spread(values) for key, values in found.items()}


def rates(captures):
    """{(where, size): {(column, insn): Spread of GB/s}}."""
    groups = grouped(of_kind(captures, "clear"), "size").items()
    return {key: spreads(records, lambda r: r["bytes"] / r["ns"]) for key, records in groups}


def fault_rates(captures):
    """{(where, size, cpus): {(column, insn): Spread of GB/s}}."""
    groups = grouped(of_kind(captures, "fault"), "size", "cpus").items()
    return {
        (where, size, cpus): spreads(records, lambda r: r["pages"] * BYTES.get(r["size"], 0) / r["ns"])
        for (where, size, cpus), records in groups
    }


def instructions(ways):
    """Instructions in the order of the records, with rep stosb first."""
    return [insn for key, insn in ways if key == "multi" and insn not in NO_ROWS]


def middle(ways, key, insn):
    return ways[key, insn].median if (key, insn) in ways else None


def cell(ways, key, insn):
    return words.spread(ways[key, insn]) if (key, insn) in ways else "-"


# ---- clearing alone ----


def beside(found):
    rows, ours = [], []
    for (where, size), ways in found.items():
        place = words.WHERE.get(where, where)
        for insn in instructions(ways):
            page, multi, whole = (middle(ways, key, insn) for key in ("page", "multi", "whole"))
            cells = [words.figure(page), words.figure(multi), words.percent(multi, page), words.figure(whole)]
            rows.append([place, f"`{insn}`", size, *cells, words.percent(whole, page)])
        for insn, what in (("default", "the default"), ("all-cpus", "the default, all CPUs")):
            value = middle(ways, "multi", insn) or middle(ways, "page", insn)
            if value:
                ours.append(len(rows))
                rows.append([place, what, size, "-", words.figure(value), "-", "-", "-"])
        plain = next((ways[key].median for key in ways if key[0] == "plain"), None)
        if plain:
            rows.append([place, "a plain non-temporal fill", size, "-", words.figure(plain), "-", "-", "-"])
    head = ["machine", "instruction", "size", "steps of 4 KiB GB/s", "extents GB/s", "change", "as one GB/s", "change"]
    return Table(head, rows, "Clearing alone: the same instruction in steps and in extents", left=3, ours=tuple(ours))


def extent_bytes(record):
    text = str(record["extent"])
    if text == "whole":
        return BYTES.get(record["size"], 0)
    return int(text[:-1]) * EXTENT_BYTES.get(text[-1], 0) if text[:-1].isdigit() else 0


def extent_pictures(captures):
    for (where, size), records in grouped(of_kind(captures, "clear_extent"), "size").items():
        series = {}
        for r in records:
            if extent_bytes(r):
                series.setdefault(r["insn"], {}).setdefault(extent_bytes(r) / 1024, []).append(r["bytes"] / r["ns"])
        lines = [
            Series(insn, [(kib, s.median, s.low, s.high) for kib, values in points.items() for s in [Spread(values)]])
            for insn, points in series.items()
        ]
        name = f"clear-extent-{size.lower()}-{where}"
        svg = pictures.lines(name, lines, "what one instruction is given, KiB", "GB/s", logx=2)
        yield Figure(name, svg, f"A page of {size} by extent, an instruction a line: {words.WHERE.get(where, where)}.")


def insn_picture(found, where, size):
    ways = found[where, size]
    names = instructions(ways)
    plain = next((ways[key].median for key in ways if key[0] == "plain"), None)
    bars = [("steps of 4 KiB (before)", "orange", "page"), ("extents (after)", "blue", "multi"), ("as one", "green", "whole")]
    name = f"clear-{size.lower()}-{where}"
    svg = pictures.bars(
        name,
        names,
        [
            (label, colour, [middle(ways, key, insn) for insn in names])
            for label, colour, key in bars
            if any((key, insn) in ways for insn in names)
        ],
        "GB/s",
        level=(plain, "plain non-temporal fill") if plain else None,
    )
    return Figure(name, svg, f"Clearing pages of {size}, by instruction: {words.WHERE.get(where, where)}.")


# ---- faults ----


def fault_table(captures):
    found = fault_rates(captures)
    if not found:
        return None
    rows, ours = [], []
    for machine, size, before, after in seeds.CLEAR:
        extents, whole = (after, None) if size == "2M" else (None, after)
        cells = [words.figure(extents), words.percent(extents, before), words.figure(whole), words.percent(whole, before)]
        rows.append([machine, "published, `rep stosb`", size, 1, words.figure(before), *cells])
    for (where, size, cpus), ways in found.items():
        place = words.WHERE.get(where, where)
        for insn in instructions(ways):
            page, multi, whole = (middle(ways, key, insn) for key in ("page", "multi", "whole"))
            cells = [cell(ways, "multi", insn), words.percent(multi, page), cell(ways, "whole", insn)]
            rows.append([place, f"`{insn}`", size, cpus, cell(ways, "page", insn), *cells, words.percent(whole, page)])
        for key in ("multi", "page"):
            if (key, "default") in ways:
                ours.append(len(rows))
                rows.append([place, "the default", size, cpus, "-", cell(ways, key, "default"), "-", "-", "-"])
    head = ["machine", "instruction", "size", "CPUs", "steps of 4 KiB GB/s", "extents GB/s", "change", "as one GB/s", "change"]
    return Table(head, rows, "Touching a region of huge pages, page by page", left=3, ours=tuple(ours))


def fault_costs(captures):
    rows = []
    groups = grouped(of_kind(captures, "fault"), "size", "cpus", "pages")
    for (where, size, cpus, pages), records in groups.items():
        chosen = [r for r in records if r.get("insn", "default") == "default"]
        if chosen:
            us = words.spread(Spread([r["ns"] / r["faults"] / 1000 for r in chosen]))
            rounds = max(r["unmap_rounds"] for r in chosen)
            rows.append([words.WHERE.get(where, where), size, cpus, pages, len(chosen), us, rounds])
    head = ["machine", "size", "CPUs", "pages", "runs", "us a fault", "rounds to unmap all"]
    return Table(head, rows, "A fault by default", left=2) if rows else None


def fault_picture(captures):
    series = []
    for (where, size), of_size in grouped(of_kind(captures, "fault"), "size").items():
        for insn, key, colour, label in (
            ("erms", "page", "orange", "rep stosb, steps of 4 KiB"),
            ("erms", "multi", "blue", "rep stosb, extents"),
            ("default", "multi", "green", "the default"),
        ):
            by_cpus = {}
            for r in of_size:
                if (column(r), r.get("insn", "default")) == (key, insn):
                    by_cpus.setdefault(r["cpus"], []).append(r["pages"] * BYTES.get(size, 0) / r["ns"])
            points = [(cpus, s.median, s.low, s.high) for cpus, values in by_cpus.items() for s in [Spread(values)]]
            if points:
                series.append(Series(f"{size}, {label} ({where})", points, colour, dashed=size == "1G"))
    if not series:
        return None
    svg = pictures.lines("fault-cpus", series, "CPUs that touch", "GB/s brought", logx=2)
    return Figure("fault-cpus", svg, "Rate of demand faults against the CPUs that touch the region.")


# ---- events ----

EVENTS = (
    "instructions",
    "branches",
    "branch_misses",
    "l1d_loads",
    "l1d_misses",
    "llc_loads",
    "llc_misses",
    "dtlb_loads",
    "dtlb_misses",
)


def events_of(text):
    """"cycles:5,branches:2" as numbers; torn parts are left out."""
    pairs = (pair.partition(":") for pair in str(text).split(","))
    return {name: int(value) for name, _, value in pairs if value.isdigit() and len(value) < 20}


def counted_row(machine, what, size, events, pages):
    ipc = words.ratio(events.get("instructions"), events.get("cycles"))
    return [machine, what, size, words.figure(ipc)] + [
        words.figure(events[name] / pages) if name in events else "-" for name in EVENTS
    ]


def counted_table(captures):
    """Events per page: published, from the CPU's counters, from the model."""
    rows = []
    names = {"page": "4K", "multi": "extents", "whole": "as one"}
    for r in of_kind(captures, "fault"):
        events = events_of(r.get("pmu", "none"))
        if events:
            what = f"`{r.get('insn', 'default')}`, {names.get(column(r), '')}"
            rows.append(counted_row(words.WHERE.get(r.capture.where), what, r["size"], events, r["pages"]))
    for r in of_kind(captures, "cachegrind"):
        events = {name: r.get(name) for name in EVENTS if isinstance(r.get(name), (int, float))}
        what = f"`{r['insn']}`, {names.get(column(r), '')}"
        rows.append(counted_row("model (cachegrind)", what, r["size"], events, r["pages"]))
    if not rows:
        return None
    published = []
    for (machine, size), (before, after) in seeds.CLEAR_COUNTED.items():
        pages = seeds.CLEAR_REGION // BYTES[size]
        published.append(counted_row(machine, "published, before", size, before, pages))
        published.append(counted_row(machine, "published, after", size, after, pages))
    head = ["machine", "", "size", "IPC"] + [name.replace("_", " ") for name in EVENTS]
    return Table(head, published + rows, "Events per huge page", left=3)


COUNTED = (
    "Published: user and kernel of Linux, multiplexed, so to be read to one or two digits. The model has every load and store that the"
    " hosted machine's thread makes, with a first-level cache of 32 KiB and a last level of 32 MiB, of 64-byte lines (Milan's); a rep"
    " instruction counts once and its stores as many times as it stores. It has no cycles, no TLB, no prefetching and no stores that pass"
    " a cache by, so it cannot show that Milan elides lines; and it does not see into the host's kernel. Its \"loads\" and \"misses\" of"
    " L1D are loads and stores together, as in AMD's events."
)


# ---- the section ----


def headline(captures):
    """The measure of the series, with its own instruction: demand faults by one CPU."""
    found = fault_rates(captures)
    where = next((w for w in words.WHERE if (w, "2M", 1) in found), None)
    ways = found.get((where, "2M", 1), {})
    if ("page", "erms") not in ways or ("multi", "erms") not in ways:
        return None
    _, _, before, after = seeds.CLEAR[2]
    return [
        "Clearing series, fault in 2 MiB pages, `rep stosb`: GB/s",
        words.figure(before),
        words.figure(after),
        words.figure(middle(ways, "page", "erms")),
        words.figure(middle(ways, "multi", "erms")),
        words.figure(middle(ways, "multi", "default")),
        words.WHERE.get(where, where),
    ]


def section(paper, captures):
    found = rates(captures)
    faults = fault_table(captures)
    counted = counted_table(captures)
    if not found and not faults and not counted:
        return
    paper.add(Heading("Clearing series: huge pages are cleared"))
    paper.add(
        Text(
            'Arora, "mm/clear_huge_page: use multi-page clearing", 2023-04: telling the CPU the whole extent instead of'
            " 512 single pages. Steps and extents are compared with the same instruction, `rep stosb` first."
        )
    )
    if faults:
        paper.add(Heading("Faults: the series' own test", 3), faults)
        paper.add(
            Text(
                "Published: 64 GiB by one task of Linux, boost off. Here: the region that the records say (`bytes=64G` is the"
                " series'), medians of runs in turns. Natively the host's signals and mappings are in it; with one CPU the time is what"
                " the host gave the thread. " + words.EMULATED,
                "note",
            )
        )
        paper.add(fault_costs(captures), fault_picture(captures))
    if counted:
        paper.add(Heading("Counted", 3), counted, Text(COUNTED, "note"))
    if found:
        paper.add(Heading("Clearing alone", 3), beside(found))
        paper.add(
            Text(
                "No published figure stands here: those are of faults. The fastest of many turns for each page, as others on a host only"
                " ever add. Natively the memory is in 4 KiB pages of the host's own tables, so their TLB misses are in it.",
                "note",
            )
        )
        paper.add(
            *(insn_picture(found, where, size) for where, size in found if size != "4K"),
            *extent_pictures(captures),
        )
