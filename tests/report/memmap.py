"""S1: making all struct pages with 0 to all CPUs of a node."""

import pictures
import seeds
import words
from paper import Figure, Heading, Table, Text
from pictures import Series
from records import grouped, of_kind


def rows_of(captures):
    """{(where, capture name): records of one table}."""
    found = {}
    for record in of_kind(captures, "memmap"):
        found.setdefault((record.capture.where, record.capture.name), []).append(record)
    return {key: rows for key, rows in found.items() if {"serial", "parallel"} <= {r["mode"] for r in rows}}


def serial_of(rows):
    return next(r["ns"] for r in rows if r["mode"] == "serial")


def best_of(rows):
    return min((r for r in rows if r["mode"] == "parallel"), key=lambda r: r["ns"])


def published_short():
    rows = []
    for machine, nodes, gib, table in seeds.MEMMAP:
        serial, best = table[0][4], min(table, key=lambda row: row[4])
        rows.append(
            [
                machine,
                "published",
                f"{nodes} x {gib} GiB",
                words.figure(serial),
                words.figure(table[1][4]),
                words.figure(best[4]),
                best[1],
                f"{(1 - best[4] / serial) * 100:.1f} %",
                words.figure(serial * 1e6 / (gib * 2**30 / 4096)),
                words.figure(best[4] * 1e6 / (gib * 2**30 / 4096)),
            ]
        )
    return rows


def beside(found):
    rows = published_short()
    ours = []
    for (where, name), table in found.items():
        serial, best, capture = serial_of(table), best_of(table), table[0].capture
        one = next((r for r in table if r["mode"] == "parallel" and r["threads"] == 1), None)
        lazy = next((r for r in table if r["mode"] == "lazy"), None)
        ours.append(len(rows))
        rows.append(
            [
                words.place(where, capture.facts.get("cpus", "?")),
                f"ours, after ({name})",
                words.size(table[-1]["pages"] * 4096),
                words.figure(serial / 1e6),
                words.figure(one and one["ns"] / 1e6),
                words.figure(best["ns"] / 1e6),
                best["threads"],
                f"{(1 - best['ns'] / serial) * 100:.1f} %",
                words.figure(serial / table[-1]["pages"]),
                words.figure(best["ns"] / best["pages"]),
            ]
        )
        if lazy:
            ours.append(len(rows))
            rows.append(
                [
                    "",
                    "ours, lazy: at boot nothing, later all at once",
                    words.size(lazy["pages"] * 4096),
                    "-",
                    words.figure(lazy["ns"] / 1e6),
                    "-",
                    "-",
                    "-",
                    words.figure(lazy["ns"] / lazy["pages"]),
                    "-",
                ]
            )
    head = [
        "machine",
        "",
        "memory",
        "no helper ms",
        "1 thread ms",
        "best ms",
        "threads",
        "saved",
        "serial ns/page",
        "best ns/page",
    ]
    return Table(head, rows, "Time to make all struct pages; the slowest node decides", left=3, ours=tuple(ours))


def published_full():
    rows = [
        [
            machine,
            f"{percent} %",
            threads,
            f"{boot:.1f} ({boot_sd:.1f})",
            f"{init:.1f} ({init_sd:.1f})",
            f"{(1 - init / table[0][4]) * 100:.1f} %",
        ]
        for machine, _, _, table in seeds.MEMMAP
        for percent, threads, boot, boot_sd, init, init_sd in table
    ]
    return Table(
        ["published on", "node", "threads", "boot ms (sd)", "init ms (sd)", "init saved"],
        rows,
        "Published: all rows",
        folded=True,
    )


def ours_full(found):
    rows = []
    for (where, name), table in found.items():
        for r in table:
            rows.append(
                [
                    words.WHERE.get(where, where),
                    name,
                    r["mode"],
                    r.get("asked", "-"),
                    r["threads"],
                    f"{r['ns'] / 1e6:.3f} ({r['ns_sd'] / 1e6:.3f})",
                    f"{(1 - r['ns'] / serial_of(table)) * 100:.1f} %",
                    words.figure(r["ns"] / r["pages"]),
                ]
            )
    return Table(
        ["machine", "run", "mode", "asked", "threads", "ms: mean of 3 (sd)", "saved", "ns/page"],
        rows,
        "Ours: all rows",
        left=3,
        folded=True,
    )


def threads_picture(found):
    """How many times as fast as without helper threads."""
    series = []
    for (where, name), table in found.items():
        by_threads = {}
        for r in table:
            if r["mode"] == "parallel":
                by_threads.setdefault(r["threads"], []).append(r["ns"])
        points = [(threads, serial_of(table) / min(ns)) for threads, ns in by_threads.items()]
        series.append(Series(f"ours: {words.place(where, table[0].capture.facts.get('cpus', '?'))}", points))
    for (machine, _, _, table), colour in zip(seeds.MEMMAP[:4], ("grey", "purple", "red", "orange")):
        points = [(row[1], table[0][4] / row[4]) for row in table if row[1]]
        series.append(Series(machine.partition(",")[0], points, colour, thin=True))
    svg = pictures.lines(
        "memmap-threads",
        series,
        "threads on the node",
        "speed, no helper = 1",
        logx=2,
        level=(1, ""),
        xticks=[1, 2, 4, 8, 16, 32, 52],
    )
    return Figure(
        "memmap-threads",
        svg,
        "Speed against threads; thin lines are the published machines, which have that many cores.",
    )


def page_picture(found):
    """Time per struct page: before, after, ours."""
    names, serial, best, lazy = [], [], [], []
    for machine, _, gib, table in seeds.MEMMAP[:4]:
        pages = gib * 2**30 / 4096
        names.append(machine.partition(",")[0])
        serial.append(table[0][4] * 1e6 / pages)
        best.append(min(row[4] for row in table) * 1e6 / pages)
        lazy.append(None)
    for (where, _), rows in found.items():
        names.append(f"ours, {words.WHERE.get(where, where)}")
        serial.append(serial_of(rows) / rows[0]["pages"])
        best.append(best_of(rows)["ns"] / rows[0]["pages"])
        lazy.append(next((r["ns"] / r["pages"] for r in rows if r["mode"] == "lazy"), None))
    svg = pictures.bars(
        "memmap-page",
        names,
        [("serial (before)", "red", serial), ("all threads (after)", "orange", best), ("lazy (ours)", "blue", lazy)],
        "ns per struct page",
        log=10,
    )
    return Figure("memmap-page", svg, "Time per struct page of 64 bytes.")


def headline(captures):
    found = rows_of(captures)
    best = max(found.items(), key=lambda item: (item[0][0] != "tcg", item[1][0]["threads"]), default=None)
    if not best:
        return None
    (where, _), rows = best
    pages, lazy = rows[-1]["pages"], next((r for r in rows if r["mode"] == "lazy"), None)
    table = seeds.MEMMAP[0][3]
    scale = 1e6 / (seeds.MEMMAP[0][2] * 2**30 / 4096)
    return [
        "S1 make all struct pages: ns per page",
        words.figure(table[0][4] * scale),
        words.figure(table[-1][4] * scale),
        words.figure(serial_of(rows) / pages),
        words.figure(best_of(rows)["ns"] / pages),
        words.figure(lazy and lazy["ns"] / lazy["pages"]),
        words.place(where, rows[0].capture.facts.get("cpus", "?")),
    ]


def section(paper, captures):
    found = rows_of(captures)
    if not found:
        return
    paper.add(Heading("S1: all struct pages are made at boot"))
    paper.add(
        Text(
            'Jordan, "mm: parallelize deferred_init_memmap()", 2020-05: the CPUs of each node make its struct pages'
            " together. Ours, lazy, makes them when a block is first split; boot does not depend on how much RAM"
            " there is."
        )
    )
    paper.add(beside(found))
    paper.add(
        Text(
            "Not comparable: Linux initialises fields and links free lists for each page, Ashlar writes 64 bytes;"
            " published machines have hundreds of GiB and a core for each thread, where a host with two cores cannot"
            " gain more than twice, and one that shares its memory bus with others less. Rows are the mean of three"
            " after one unmeasured, which has the host back the memory. "
            + words.EMULATED,
            "note",
        )
    )
    paper.add(threads_picture(found), page_picture(found))
    paper.add(ours_full(found), published_full())
    plain_clear(paper, captures)


def plain_clear(paper, captures):
    rows = []
    for (where, threads), records in grouped(of_kind(captures, "probe", name="clear"), "threads").items():
        for r in records:
            if r.get("bytes"):
                rows.append(
                    [
                        words.WHERE.get(where, where),
                        threads,
                        r["turns"],
                        words.size(r["bytes"]),
                        words.figure(r["bytes"] / r["ns"]),
                        words.figure(r["memmap_pages"] * 64 / r["memmap_ns"]),
                    ]
                )
    if rows:
        head = ["machine", "threads", "turns", "memory", "clear GB/s", "struct pages GB/s"]
        paper.add(Table(head, rows, "The bound: a plain clear of as much memory, in turn with making struct pages"))
