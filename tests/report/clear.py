"""S2: clearing huge pages, page by page and in one extent; and bringing them by faults."""

import pictures
import seeds
import words
from paper import Figure, Heading, Table, Text
from pictures import Series
from records import Spread, grouped, of_kind

SIZES = ("4K", "2M", "1G")
BYTES = {"4K": 4096, "2M": 2 << 20, "1G": 1 << 30}


def rates(captures):
    """{(where, size): {(mode, insn): Spread of GB/s}}."""
    found = {}
    for (where, size, mode, insn), records in grouped(of_kind(captures, "clear"), "size", "mode", "insn").items():
        found.setdefault((where, size), {})[mode, insn] = Spread([r["bytes"] / r["ns"] for r in records])
    return found


def instructions(ways):
    return [insn for mode, insn in ways if mode == "multi" and insn not in ("default", "all-cpus")]


def middle(ways, mode, insn):
    return ways[mode, insn].median if (mode, insn) in ways else None


def beside(found):
    rows, ours = [], []
    for machine, size, before, after in seeds.CLEAR:
        rows.append(
            [machine, "published, by faults", size, f"{before:.2f}", f"{after:.2f}", words.percent(after, before)]
        )
    for (where, size), ways in found.items():
        for insn in instructions(ways):
            page, multi = middle(ways, "page", insn), middle(ways, "multi", insn)
            ours.append(len(rows))
            rows.append(
                [
                    words.WHERE.get(where, where),
                    f"ours, `{insn}`",
                    size,
                    words.figure(page),
                    words.figure(multi),
                    words.percent(multi, page),
                ]
            )
        for insn, what in (("default", "ours, the default"), ("all-cpus", "ours, all CPUs")):
            value = middle(ways, "multi", insn)
            if value:
                ours.append(len(rows))
                rows.append([words.WHERE.get(where, where), what, size, "-", words.figure(value), "-"])
        plain = next((ways[key].median for key in ways if key[0] == "plain"), None)
        if plain:
            rows.append(
                [words.WHERE.get(where, where), "a plain non-temporal fill", size, "-", words.figure(plain), "-"]
            )
    head = ["machine", "", "size", "page by page GB/s", "one extent GB/s", "change"]
    return Table(head, rows, "Clearing: before and after", left=3, ours=tuple(ours))


def insn_picture(found, where, size):
    ways = found[where, size]
    names = instructions(ways)
    plain = next((ways[key].median for key in ways if key[0] == "plain"), None)
    svg = pictures.bars(
        f"clear-{size.lower()}-{where}",
        names,
        [
            ("page by page (before)", "orange", [middle(ways, "page", i) for i in names]),
            ("one extent (after)", "blue", [middle(ways, "multi", i) for i in names]),
        ],
        "GB/s",
        level=(plain, "plain non-temporal fill") if plain else None,
    )
    return Figure(
        f"clear-{size.lower()}-{where}",
        svg,
        f"Clearing pages of {size}, by instruction: {words.WHERE.get(where, where)}.",
    )


def size_picture(found, where):
    series = {}
    for (at, size), ways in found.items():
        for insn in instructions(ways) if at == where else ():
            measured = ways["multi", insn]
            series.setdefault(insn, []).append(
                (BYTES.get(size, 0) / 1024, measured.median, measured.low, measured.high)
            )
    lines = [Series(insn, [p for p in points if p[0]]) for insn, points in series.items()]
    if not any(len(line.points) > 1 for line in lines):
        return None
    svg = pictures.lines(
        f"clear-size-{where}",
        lines,
        "page size, KiB (4 KiB pages: recently used, in the cache)",
        "GB/s, one extent",
        logx=2,
    )
    return Figure(f"clear-size-{where}", svg, f"Rate against the size of the page: {words.WHERE.get(where, where)}.")


# ---- faults ----


def fault_table(captures):
    rows = []
    for (where, size, mode, cpus), records in grouped(of_kind(captures, "fault"), "size", "mode", "cpus").items():
        bytes_ = BYTES.get(size, 0)
        gb = Spread([r["pages"] * bytes_ / r["ns"] for r in records])
        us = Spread([r["ns"] / r["faults"] / 1000 for r in records])
        rows.append(
            [
                words.WHERE.get(where, where),
                size,
                mode,
                cpus,
                records[0]["pages"],
                len(records),
                words.spread(gb),
                words.spread(us),
                records[-1]["unmap_rounds"],
            ]
        )
    head = ["machine", "size", "mode", "CPUs", "pages", "runs", "GB/s", "us a fault", "rounds to unmap all"]
    return Table(head, rows, "Faulting a region in, page by page", left=3) if rows else None


def fault_picture(captures):
    series = []
    for (where, size), of_size in grouped(of_kind(captures, "fault"), "size").items():
        for mode, colour in (("page", "orange"), ("multi", "blue")):
            by_cpus = {}
            for r in of_size:
                if r["mode"] == mode:
                    by_cpus.setdefault(r["cpus"], []).append(r["pages"] * BYTES.get(size, 0) / r["ns"])
            points = [(cpus, s.median, s.low, s.high) for cpus, rates_ in by_cpus.items() for s in [Spread(rates_)]]
            series.append(
                Series(
                    f"{size}, {'page by page' if mode == 'page' else 'one extent'} ({where})",
                    points,
                    colour,
                    dashed=size == "1G",
                )
            )
    if not series:
        return None
    svg = pictures.lines("fault-cpus", series, "CPUs that touch", "GB/s brought", logx=2)
    return Figure("fault-cpus", svg, "Rate of demand faults against the CPUs that touch the region.")


def headline(captures):
    found = rates(captures)
    where = next((w for w in words.WHERE if (w, "2M") in found), None)
    if not where:
        return None
    ways = found[where, "2M"]
    _, _, before, after = seeds.CLEAR[2]
    pages = [(key, spread.median) for key, spread in ways.items() if key[0] == "page"]
    if not pages:
        return None
    (_, insn), page = max(pages, key=lambda item: item[1])
    return [
        "S2 clear a 2 MiB page: GB/s",
        words.figure(before),
        words.figure(after),
        f"{words.figure(page)} (`{insn}`)",
        words.figure(middle(ways, "multi", insn)),
        words.figure(middle(ways, "multi", "default")),
        words.WHERE.get(where, where),
    ]


def section(paper, captures):
    found = rates(captures)
    faults = fault_table(captures)
    if not found and not faults:
        return
    paper.add(Heading("S2: huge pages are cleared"))
    paper.add(
        Text(
            'Arora, "mm/clear_huge_page: use multi-page clearing", 2023-04: telling the CPU the whole extent instead of'
            " 512 single pages."
        )
    )
    if found:
        paper.add(beside(found))
        paper.add(
            Text(
                "Not comparable: the published rates are of demand faults over 64 GiB in Linux, zeroing and all around"
                " it, pinned to one CPU with boost off. The table's rates are of clearing alone, the fastest of many"
                " turns for each page, as others on a host only ever add. Natively the memory is in 4 KiB pages of the"
                " host's own tables, so the TLB misses of 2 MiB and 1 GiB are in it. "
                + words.EMULATED,
                "note",
            )
        )
        paper.add(
            *(insn_picture(found, where, size) for where, size in found if size != "4K"),
            *(size_picture(found, where) for where in dict.fromkeys(where for where, _ in found)),
        )
    if faults:
        paper.add(Heading("Faults", 3), faults, fault_picture(captures))
