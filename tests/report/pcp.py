"""S3: per-CPU page lists with and without a cached migratetype; and the allocator beside its probes."""

import pictures
import seeds
import words
from paper import Figure, Heading, Table, Text
from pictures import Series
from records import Spread, of_kind

SUBJECTS = ("ashlar", "without-lists", "ring", "pcp-list", "buddy")
COLOURS = {"ashlar": "blue", "without-lists": "purple", "ring": "green", "pcp-list": "orange", "buddy": "grey"}


def both(record):
    return record["ns_alloc"] + record["ns_free"]


def pairs(captures):
    """{where: [(without, with) of each pair of runs]}."""
    found = {}
    for capture in captures:
        runs = {}
        for record in of_kind([capture], "pcp"):
            runs.setdefault(record["run"], {})[record["type_cache"]] = record
        found.setdefault(capture.where, []).extend(
            (r["off"], r["on"]) for r in runs.values() if {"on", "off"} <= r.keys()
        )
    return {where: both_ways for where, both_ways in found.items() if both_ways}


def beside(found):
    (before, before_sd), (after, after_sd) = seeds.PCP
    rows = [
        [
            "published, Linux",
            "10,000",
            f"{before:.4f} ({before_sd:.4f})",
            f"{after:.4f} ({after_sd:.4f})",
            f"{after / before:.4f}",
            "-",
            "-",
            "-",
        ]
    ]
    for where, measured in found.items():
        with_, without = Spread([both(on) / 100 for _, on in measured]), Spread(
            [both(off) / 100 for off, _ in measured]
        )
        ratio = Spread([both(off) / both(on) for off, on in measured])
        rows.append(
            [
                f"ours, {words.WHERE.get(where, where)}",
                f"{measured[0][0]['pages']:,}",
                words.spread(with_),
                words.spread(without),
                f"{ratio.median:.4f} ({ratio.low:.3f} to {ratio.high:.3f})",
                len(measured),
                sum(on["stale"] for _, on in measured) // len(measured),
                sum(off["stale"] for off, _ in measured),
            ]
        )
    for row in rows[1:]:
        row[2:4] = [f"{cell} us" for cell in row[2:4]]
    rows[0][2:4] = [f"{cell} ms" for cell in rows[0][2:4]]
    head = [
        "machine",
        "pages a batch",
        "with the cache (before)",
        "without (after)",
        "without : with",
        "pairs of runs",
        "stale with",
        "stale without",
    ]
    return Table(head, rows, "A batch allocated and freed", ours=tuple(range(1, len(rows))))


def pairs_picture(found):
    series = [
        Series(
            f"ours, {words.WHERE.get(where, where)}",
            [(i + 1, both(off) / both(on)) for i, (off, on) in enumerate(measured)],
        )
        for where, measured in found.items()
    ]
    svg = pictures.lines(
        "pcp-pairs",
        series,
        "pair of runs, in turns",
        "time without : with the cache",
        level=(seeds.PCP[1][0] / seeds.PCP[0][0], "published: 0.974"),
    )
    return Figure("pcp-pairs", svg, "Each pair of runs; below 1 the kernel without the cache is faster.")


def headline_pcp(captures):
    found = pairs(captures)
    where = next((w for w in words.WHERE if w in found), None)
    if not where:
        return None
    measured = found[where]
    published = [words.figure(ms * 1e6 / 10000) for ms, _ in seeds.PCP]
    return [
        "S3 batch of 10,000 pages: ns per page, allocated and freed",
        *published,
        words.figure(Spread([both(on) for _, on in measured]).median),
        words.figure(Spread([both(off) for off, _ in measured]).median),
        "the same",
        words.WHERE.get(where, where),
    ]


def section(paper, captures):
    found = pairs(captures)
    if found:
        paper.add(Heading("S3: per-CPU page lists that cache no type"))
        paper.add(
            Text(
                'Weiner, "mm: page_alloc: remove pcppage migratetype caching", 2023-09: looking a page\'s type up when'
                " it is freed is no dearer than remembering it, and cannot be stale."
            )
        )
        paper.add(beside(found))
        paper.add(
            Text(
                (
                    "Not comparable: the published test is a module of Linux with page faults around it (86.9 ms a"
                    " batch is nine microseconds a page); ours is the allocator alone. Compare the ratio. Runs with and"
                    " without take turns; a run's figure is the median of 21 batches."
                ),
                "note",
            )
        )
        paper.add(pairs_picture(found))


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
    """The runs that this report is made of."""
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
