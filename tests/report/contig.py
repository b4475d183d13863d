"""S4: finding 1 GiB pages at run time."""

import pictures
import seeds
import words
from paper import Figure, Heading, Table, Text
from pictures import Series
from records import of_kind

COLOUR = {"vanilla": "red", "skip": "orange", "strict": "purple", "index": "blue"}
MEANS = {
    "vanilla": "vanilla (before)",
    "skip": "skip (after)",
    "strict": "strict (check reverted)",
    "index": "index (ours)",
}


def tables(captures):
    """{(where, cpus, ram, memory): {mode: records of its steps}}."""
    found = {}
    for (where, name, memory), records in grouped_by_run(captures).items():
        facts = records[0].capture.facts
        modes = found.setdefault((where, facts.get("cpus", "?"), facts.get("ram_bytes", 0), memory), {})
        for record in records:
            modes.setdefault(record["mode"], []).append(record)
    return dict(sorted(found.items(), key=lambda item: item[0][3] != "fresh"))


def grouped_by_run(captures):
    found = {}
    for record in of_kind(captures, "contig"):
        found.setdefault((record.capture.where, record.capture.name, record["memory"]), []).append(record)
    return found


def overall(steps):
    """(pages, fastest, mean, slowest) in ms, of all steps together: exact, as each step says how many pages it had."""
    pages, total, previous = 0, 0.0, 0
    for step in sorted(steps, key=lambda r: r["total"]):
        count = step["total"] - previous if step["total"] > previous else step["step"]
        previous = step["total"]
        pages += count
        total += step["ns_mean"] * count
    return pages, min(s["ns_min"] for s in steps) / 1e6, total / pages / 1e6, max(s["ns_max"] for s in steps) / 1e6


def published():
    rows = [
        [name, words.figure(vanilla), words.figure(fix), words.figure(reverted)]
        for name, vanilla, reverted, fix in seeds.CONTIG
    ]
    return Table(
        ["latency", "vanilla", "with the fix (skip)", "check reverted (strict)"],
        rows,
        "Published: ms for a page of 1 GiB, Linux 6.3-rc6",
    )


def beside(found):
    low, high, mean = seeds.CONTIG[0], seeds.CONTIG[-2], seeds.CONTIG[-1]
    cells = [f"{words.figure(mean[i])} ({words.figure(low[i])} to {words.figure(high[i])})" for i in (1, 3, 2)]
    rows, ours = [["published, Linux 6.3-rc6", "fresh", "-", *cells, "-"]], []
    for (where, cpus, ram, memory), modes in found.items():
        cells, pages = [], set()
        for mode in ("vanilla", "skip", "strict", "index"):
            if mode not in modes:
                cells.append("-")
                continue
            count, low, mean, high = overall(modes[mode])
            pages.add(count)
            cells.append(f"{words.figure(mean)} ({words.figure(low)} to {words.figure(high)})")
        ours.append(len(rows))
        rows.append(
            [
                f"ours, {words.place(where, cpus)}, {words.size(ram) if ram else '?'}",
                memory,
                max(pages, default=0),
                *cells,
            ]
        )
    head = ["machine", "memory", "pages", *MEANS.values()]
    return Table(head, rows, "ms for a page of 1 GiB: mean (fastest to slowest)", left=2, ours=tuple(ours))


def steps_picture(key, modes):
    where, cpus, _, memory = key
    series = [
        Series(
            MEANS.get(mode, mode),
            [(r["total"], r["ns_mean"] / 1e6, r["ns_min"] / 1e6, r["ns_max"] / 1e6) for r in steps],
            COLOUR.get(mode),
        )
        for mode, steps in modes.items()
    ]
    name = f"contig-{where}-{memory}"
    svg = pictures.lines(name, series, "1 GiB pages made", "ms for a page", logy=10)
    return Figure(
        name,
        svg,
        (
            f"Time for one more page, in steps of ten, {memory} memory: mean, fastest and slowest"
            f" ({words.place(where, cpus)})."
        ),
    )


def all_steps(found):
    rows = []
    for (where, _, _, memory), modes in found.items():
        for mode, steps in modes.items():
            for r in steps:
                rows.append(
                    [
                        words.WHERE.get(where, where),
                        memory,
                        MEANS.get(mode, mode),
                        r["total"],
                        words.figure(r["ns_min"] / 1e6),
                        words.figure(r["ns_p50"] / 1e6),
                        words.figure(r["ns_mean"] / 1e6),
                        words.figure(r["ns_max"] / 1e6),
                        f"{r['scanned_pages']:,}",
                        f"{r['migrated_pages']:,}",
                    ]
                )
    head = [
        "machine",
        "memory",
        "search",
        "up to page",
        "min ms",
        "median",
        "mean",
        "max",
        "struct pages read",
        "pages moved",
    ]
    return Table(head, rows, "Every step of ten", left=3, folded=True)


def headline(captures):
    found = tables(captures)
    key = next((k for k in found if k[3] == "fresh"), None)
    if not key:
        return None
    cells = [
        words.figure(overall(found[key][mode])[2]) if mode in found[key] else "-"
        for mode in ("vanilla", "skip", "index")
    ]
    _, vanilla, _, fix = seeds.CONTIG[-1]
    return [
        "S4 make a 1 GiB page: mean ms",
        words.figure(vanilla),
        words.figure(fix),
        *cells,
        words.place(key[0], key[1]),
    ]


def section(paper, captures):
    found = tables(captures)
    if not found:
        return
    paper.add(Heading("S4: pages of 1 GiB are made at run time"))
    paper.add(
        Text(
            'Gorman, "Assume huge tail pages are valid when allocating contiguous pages", 2023-04. Vanilla reads every'
            " struct page of every GiB it passes, those of huge pages too; skip steps over huge pages; strict gives up"
            " at the first. Ours keeps an index of what is free in each GiB and reads none."
        )
    )
    paper.add(beside(found))
    paper.add(
        Text(
            "Not comparable: the published machine and its memory are other ones. Linux also isolates the range, drains"
            " every CPU's lists, tries to migrate and prepares the struct pages, even where memory is free. Neither"
            " clears the page. "
            + words.EMULATED,
            "note",
        )
    )
    seen = set()
    for key, modes in found.items():
        if (key[0], key[3]) not in seen:
            paper.add(steps_picture(key, modes))
        seen.add((key[0], key[3]))
    paper.add(published(), all_steps(found))
