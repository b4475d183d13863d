"""The per-CPU list series: per-CPU page lists with and without a cached migratetype; and the allocator beside its probes."""

import statistics

import pictures
import seeds
import words
from paper import Figure, Heading, Table, Text
from pictures import Series
from records import Spread, of_kind

SUBJECTS = ("ashlar", "without-lists", "ring", "pcp-list", "buddy")
COLOURS = {"ashlar": "blue", "without-lists": "purple", "ring": "green", "pcp-list": "orange", "buddy": "grey"}


WAYS = {"on": "on (before)", "first": "first (the first patch)", "each": "each (the series)", "off": "off (ours)"}
RATIOS = (("first", "on"), ("each", "on"), ("off", "each"), ("off", "on"))


def both(record):
    return record["ns_alloc"] + record["ns_free"]


def rounds(captures):
    """{where: [{way: record}, one for each round in which every way had its turn]}."""
    found = {}
    for capture in captures:
        runs = {}
        for record in of_kind([capture], "pcp"):
            runs.setdefault(record["run"], {})[record["type_cache"]] = record
        found.setdefault(capture.where, []).extend(run for run in runs.values() if WAYS.keys() <= run.keys())
    return {where: measured for where, measured in found.items() if measured}


def number(text):
    return float(text.replace(",", ""))


def published():
    rows = []
    for name, (before, before_by), (after, after_by) in seeds.PCP:
        ratio = f"{number(after) / number(before):.4f}" if name in ("seconds time elapsed", "instructions") else "-"
        rows.append([name, f"{before} (+- {before_by})", f"{after} (+- {after_by})", ratio])
    title = "Published: perf stat of batches of 10,000 pages, allocated and freed"
    return Table(["", "before", "after the first patch", "after : before"], rows, title)


def unit(where):
    return "instructions" if where == "icount" else "ns"


def times(where, measured):
    rows = []
    for way, name in WAYS.items():
        records = [run[way] for run in measured]
        one = records[0]
        rows.append(
            [
                name,
                words.spread(Spread([r["ns_alloc"] for r in records])),
                words.spread(Spread([r["ns_free"] for r in records])),
                *(f"{one[key] / one['freed']:.3f}" for key in ("fetch_lookups", "lookups", "drain_lookups")),
                f"{one['drain_lookups']:,} for {one['drained']:,}",
                sum(r["stale"] for r in records) // len(records),
            ]
        )
    head = [
        "types",
        f"{unit(where)} to allocate",
        f"{unit(where)} to free",
        "look-ups a page, fetching",
        "freeing",
        "giving back",
        "look-ups for pages given back",
        "stale pages",
    ]
    return Table(head, rows, f"A page, {words.WHERE.get(where, where)}, {len(measured)} rounds", ours=(len(rows) - 1,))


def ratios(found):
    elapsed = next(row for row in seeds.PCP if row[0] == "seconds time elapsed")
    theirs = number(elapsed[2][0]) / number(elapsed[1][0])
    rows = [["published, time elapsed", f"{theirs:.4f}", "-", "-", "-"]]
    for where, measured in found.items():
        cells = []
        for after, before in RATIOS:
            ratio = Spread([both(run[after]) / both(run[before]) for run in measured])
            cells.append(f"{ratio.median:.4f} ({ratio.low:.3f} to {ratio.high:.3f})")
        rows.append([f"ours, {words.WHERE.get(where, where)}, {unit(where)} a page", *cells])
    head = ["", "the first patch : before", "the series : before", "ours : the series", "ours : before"]
    return Table(head, rows, "Ratios, allocating and freeing together", ours=tuple(range(1, len(rows))))


def ratio_picture(found):
    series = [
        Series(
            f"{after} : {before}, {words.WHERE.get(where, where)}",
            [(i + 1, both(run[after]) / both(run[before])) for i, run in enumerate(measured)],
        )
        for where, measured in found.items()
        for after, before in (("first", "on"), ("off", "on"))
    ]
    elapsed = next(row for row in seeds.PCP if row[0] == "seconds time elapsed")
    level = (number(elapsed[2][0]) / number(elapsed[1][0]), "published, first : on")
    svg = pictures.lines("pcp-pairs", series, "round, in turns", "time : that of on", level=level)
    return Figure("pcp-pairs", svg, "Each round; below 1 is faster than with the cache.")


def headline_pcp(captures):
    found = rounds(captures)
    where = next((w for w in words.WHERE if w in found), None)
    if not where:
        return None
    *_, (_, (before, _), (after, _)) = seeds.PCP
    mine = {
        way: Spread([both(run[way]) / both(run["on"]) for run in found[where]]).median for way in ("first", "off")
    }
    return [
        "Per-CPU list series, batches of 10,000 pages: time elapsed, before = 1",
        f"1 ({before} s)",
        f"{number(after) / number(before):.4f} ({after} s)",
        "1",
        f"{mine['first']:.4f}",
        f"{mine['off']:.4f}",
        words.WHERE.get(where, where),
    ]


# ---- page_fault1 ----


def fault_rows(captures):
    """{(where, cpus): {way: records}}. Runs in turn with Linux are left out: they stand beside Linux (peer.py)."""
    found = {}
    for r in of_kind([c for c in captures if not c.name.startswith("peer-")], "page_fault"):
        found.setdefault((r.capture.where, r["cpus"]), {}).setdefault(r["type_cache"], []).append(r)
    return {key: ways for key, ways in sorted(found.items()) if WAYS.keys() <= ways.keys()}


def published_faults():
    base = seeds.PAGE_FAULT1[0][1]
    rows = [
        [patch, f"{ops:.1f} (+- {ops_by})", f"{ops / base:.4f}", f"{share:.2f} (+- {share_by})"]
        for patch, ops, ops_by, share, share_by in seeds.PAGE_FAULT1
    ]
    head = ["up to this patch", "will-it-scale.1.processes", ": base", "% of cycles in get_pfnblock_flags_mask()"]
    return Table(head, rows, "Published: page_fault1, one process, pages from and to per-CPU lists only")


def faults(found):
    rows, ours = [], []
    for (where, cpus), ways in found.items():
        base = Spread([r["ops"] for r in ways["on"]]).median
        for way, name in WAYS.items():
            ops = Spread([r["ops"] for r in ways[way]])
            one = ways[way][-1]
            if way == "off":
                ours.append(len(rows))
            rows.append(
                [
                    words.WHERE.get(where, where),
                    cpus,
                    name,
                    words.spread(ops),
                    f"{ops.median / base:.4f}",
                    f"{one['lookups'] / one['touched']:.3f}",
                    f"{one['drain_lookups']:,} for {one['drained']:,}",
                ]
            )
    head = ["machine", "CPUs", "types", "pages a second", ": on", "look-ups a page freed", "look-ups for pages given back"]
    title = "page_fault1: a region of each CPU faulted in and unmapped, again and again"
    return Table(head, rows, title, left=3, ours=tuple(ours))


def section(paper, captures):
    found, faulted = rounds(captures), fault_rows(captures)
    if not found and not faulted:
        return
    paper.add(Heading("Per-CPU list series: per-CPU page lists that cache no type"))
    paper.add(
        Text(
            'Weiner, "mm: page_alloc: remove pcppage migratetype caching", 2023-09: looking a page\'s type up when it is'
            " given back is no dearer than remembering it, and cannot be stale. Before, the type is stored with each page"
            " as it is fetched and freed, and believed when it is given back. The first patch looks each page up, in bulk"
            " twice, and when it is fetched; the series as a whole once when it is freed and once when it is given back."
            " Ours looks up once for each page freed and once for all pages of a block that are given back."
        )
    )
    if found:
        paper.add(published(), ratios(found))
        for where, measured in found.items():
            paper.add(times(where, measured))
        paper.add(
            Text(
                "Not comparable in seconds: the published test is a module of Linux, and how many batches it ran is not"
                " said. Compare the ratio. Ways take turns; a round's figure is the median of 21 batches. The three of Linux"
                " keep their pages in the same bitmaps as ours, and differ in what is noted and looked up for each page"
                " and in giving pages back one by one.",
                "note",
            )
        )
        paper.add(ratio_picture(found))
    if faulted:
        paper.add(published_faults(), faults(faulted))
        paper.add(
            Text(
                "Not comparable in operations a second: the published machine is not named. Compare the column `: on` with"
                " `: base`, and look-ups with cycles in get_pfnblock_flags_mask(). " + words.EMULATED,
                "note",
            )
        )


# ---- the allocator ----


def subjects(captures):
    """{(test, op, threads): {subject: Spread of ns}} of native runs."""
    found = {}
    for kind in ("alloc", "probe"):
        for r in of_kind(captures, kind):
            test, op = r.get("test"), r.get("op")
            if r.get("style") or not test or not op:  # another benchmark: steady, clear
                continue
            subject = "ashlar" if kind == "alloc" else r["name"]
            found.setdefault((test, op, r["threads"]), {}).setdefault(subject, []).append(r["ns"])
    return {key: {name: Spread(ns) for name, ns in row.items()} for key, row in found.items()}


def takings(captures):
    """Rows of the takings of the zone's lock for 1,000 calls: medians."""
    found = {}
    for r in of_kind(captures, "alloc"):
        if isinstance(r.get("locks"), (int, float)) and r.get("test") and r.get("op"):
            found.setdefault((r["test"], r["op"], r["threads"]), []).append(r["locks"])
    return [[*key, f"{statistics.median(values):.3f}"] for key, values in found.items()]


def allocator(paper, captures):
    found = subjects(captures)
    if not found:
        return
    rows = [
        [test, op, threads] + [words.spread(row[s]) if s in row else "-" for s in SUBJECTS]
        for (test, op, threads), row in found.items()
    ]
    paper.add(Heading("The page allocator: nanoseconds a call"))
    paper.add(
        Text(
            "The allocator, the same without its per-CPU lists, and three probes that say how fast this machine can be:"
            " a ring of page numbers, Linux-shaped lists, a plain buddy behind one lock."
        )
    )
    paper.add(Table(["row", "op", "threads", *SUBJECTS], rows, "Nanoseconds a call", left=2))
    paper.add(
        Text(
            (
                "Not comparable: the probes have no zones, watermarks, types or checks. Rows in which a thread was"
                " switched away from are left out; `-` means that no undisturbed round was left."
            ),
            "note",
        )
    )
    locked = takings(captures)
    if locked:
        paper.add(Text("How often the allocator, with its per-CPU lists, takes the lock of the zone, for 1,000 calls of each row:"))
        paper.add(Table(["row", "op", "threads", "takings"], locked, "Takings of the zone's lock", left=2))
    for threads in sorted({key[2] for key in found}):
        order0 = [
            key
            for key in found
            if key[2] == threads and key[0] in ("pair0", "bulk0-inorder", "bulk0-random", "aged", "xfree")
        ]
        names = [f"{test} {op}" if op != "pair" else test for test, op, _ in order0]
        drawn = [
            (s, COLOURS[s], [found[key][s].median if s in found[key] else None for key in order0]) for s in SUBJECTS
        ]
        drawn = [one for one in drawn if any(v is not None for v in one[2])]
        svg = pictures.bars(f"alloc-{threads}", names, drawn, "ns a call", log=10) if order0 else ""
        paper.add(
            Figure(
                f"alloc-{threads}",
                svg,
                f"Pages of 4 KiB, {threads} thread{'s' if threads > 1 else ''}: lower is better.",
            )
        )


def headline_alloc(captures):
    found = subjects(captures)
    row = found.get(("bulk0-inorder", "alloc", 1))
    if not row or "ashlar" not in row:
        return None
    cells = [words.figure(row[s].median) if s in row else "-" for s in ("without-lists", "pcp-list", "ashlar")]
    return [
        "Allocator, 4 KiB pages in bulk: ns (before: no lists; after: Linux-shaped lists)",
        "-",
        "-",
        *cells,
        "hosted, native",
    ]


def boots(captures):
    """The runs from which this report is made."""
    rows = []
    for capture in captures:
        facts = capture.facts
        ready = [r["ns_to_ready"] for r in of_kind([capture], "boot")]
        rows.append(
            [
                capture.name,
                words.WHERE.get(capture.where, capture.where),
                facts.get("cpus", "-"),
                words.size(facts["ram_bytes"]) if "ram_bytes" in facts else "-",
                words.figure(ready[0] / 1e6) if ready else "-",
                facts.get("seconds", "-"),
                facts.get("busy", "-"),
                len(capture.records),
                capture.torn,
                capture.problem or "pass",
                facts.get("command", "-"),
            ]
        )
    head = [
        "run",
        "machine",
        "CPUs",
        "memory",
        "ms to ready",
        "s in all",
        "other work",
        "records",
        "torn",
        "verdict",
        "command",
    ]
    return Table(head, rows, "Runs", left=2)
