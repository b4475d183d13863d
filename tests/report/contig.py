"""The contiguous-range series: finding 1 GiB pages at run time."""

import pictures
import seeds
import words
from paper import Figure, Heading, Table, Text
from pictures import Series
from records import of_kind

COLOUR = {
    "vanilla": "red",
    "revert": "green",
    "skip": "orange",
    "strict": "purple",
    "step": "grey",
    "index": "blue",
}
MEANS = {
    "vanilla": "vanilla (before)",
    "revert": "revert (the series' reference)",
    "skip": "skip (after)",
    "strict": "strict (the simpler fix)",
    "step": "step (Linux 7.0)",
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
    """(pages, fastest, mean, slowest) in ms, of all steps together. The mean is exact, because each step says how many pages it had."""
    pages, total, previous = 0, 0.0, 0
    for step in sorted(steps, key=lambda r: r["total"]):
        count = step["total"] - previous if step["total"] > previous else step["step"]
        previous = step["total"]
        pages += count
        total += step["ns_mean"] * count
    return pages, min(s["ns_min"] for s in steps) / 1e6, total / pages / 1e6, max(s["ns_max"] for s in steps) / 1e6


def saved(value, vanilla):
    return f"({100 * (vanilla - value) / vanilla:.2f}%)" if vanilla else ""


def ms(ns, vanilla_ns):
    """A cell in the format of the published table: the value, and the percentage that it saves of vanilla's."""
    return f"{words.figure(ns / 1e6)} {saved(ns, vanilla_ns)}".strip()


def columns(captures):
    """{(where, cpus, ram, memory): {mode: the record of its column, from the run with the most pages}}."""
    found = {}
    for r in of_kind(captures, "contig_table"):
        facts = r.capture.facts
        key = (r.capture.where, facts.get("cpus", "?"), facts.get("ram_bytes", 0), r["memory"])
        modes = found.setdefault(key, {})
        if r["mode"] not in modes or modes[r["mode"]]["pages"] <= r["pages"]:
            modes[r["mode"]] = r
    return dict(sorted(found.items(), key=lambda item: item[0][3] != "fresh"))


def seeds_table(key, modes):
    """The published rows: the three published columns beside ours that do the same work, then our other columns."""
    where, cpus, ram, memory = key
    mine = [mode for mode in MEANS if mode in modes]
    vanilla = modes.get("vanilla")
    with_seed = memory == "fresh"
    rows = []
    for name, field, *theirs in seeds.CONTIG:
        cells = [f"{value:.2f} ({percent:.2f}%)" for value, percent in theirs] if with_seed else []
        rows.append([name, *cells, *(ms(modes[m][field], vanilla and vanilla[field]) for m in mine)])
    for name, *theirs in seeds.CONTIG_DURATION:
        spent = {
            "Duration User": lambda r: r["ns_elapsed"] - r["ns_system"],
            "Duration System": lambda r: r["ns_system"],
            "Duration Elapsed": lambda r: r["ns_elapsed"],
        }[name]
        cells = [f"{value:.2f} s" for value in theirs] if with_seed else []
        rows.append([name, *cells, *(f"{spent(modes[m]) / 1e9:.3f} s" for m in mine)])
    blank = ["-"] * 3 if with_seed else []
    rows.append(["pages made", *blank, *(f"{modes[m]['pages']:,}" for m in mine)])
    rows.append(["struct pages read", *blank, *(f"{modes[m]['scanned_pages']:,}" for m in mine)])
    rows.append(["references given and taken", *blank, *(f"{modes[m]['references']:,}" for m in mine)])
    rows.append(["frames moved", *blank, *(f"{modes[m]['migrated_pages']:,}" for m in mine)])
    if memory == "aged":
        rows.append(["share of copying", *(f"{modes[m]['copy_ns'] / modes[m]['ns_system']:.2f}" for m in mine)])
    names = ["vanilla", "hugeallocrevert", "hugeallocfix"] if with_seed else []
    head = ["latency", *(f"published {name}" for name in names), *(MEANS[m] for m in mine)]
    title = f"ms for a page, batches of ten, {memory} memory: {words.place(where, cpus)}, {words.size(ram) if ram else '?'}"
    return Table(head, rows, title)


def beside(found):
    low, high, mean = seeds.CONTIG[0], seeds.CONTIG[-2], seeds.CONTIG[-1]
    vanilla, reverted, fixed = (
        f"{words.figure(mean[i][0])} ({words.figure(low[i][0])} to {words.figure(high[i][0])})" for i in (2, 3, 4)
    )
    rows, ours = [["published, Linux 6.3-rc6", "fresh", "-", vanilla, reverted, fixed, "-", "-", "-"]], []
    for (where, cpus, ram, memory), modes in found.items():
        cells, pages = [], set()
        for mode in MEANS:
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
    _, _, vanilla, _, fix = seeds.CONTIG[-1]
    return [
        "Contiguous-range series, make a 1 GiB page: mean ms",
        words.figure(vanilla[0]),
        words.figure(fix[0]),
        *cells,
        words.place(key[0], key[1]),
    ]


def section(paper, captures):
    found = tables(captures)
    if not found:
        return
    paper.add(Heading("Contiguous-range series: pages of 1 GiB are made at run time"))
    paper.add(
        Text(
            'Gorman, "Assume huge tail pages are valid when allocating contiguous pages", 2023-04. Vanilla reads every'
            " struct page of every GiB it passes, those of huge pages too. Revert is the series' reference, the older"
            " check: any page in use ends the look at a range, and so does any huge page. Skip is the series: a huge page"
            " as large as the request ends it. Strict is the simpler fix that the series mentions and publishes no"
            " column for: any huge page. Step is what Linux 7.0 does: it goes by the size of what it meets and gives the"
            " pages of a range no references. Ours keeps an index of what is free in each GiB and reads none."
        )
    )
    paper.add(beside(found))
    paper.add(
        Text(
            "Not comparable in ms: the published machine and its memory are other ones. Compare the percentages of a"
            " column, and how a column grows. A sample is a batch of ten, as in the published test; Max-n is the slowest"
            " of the fastest n percent. Duration User is what the benchmark itself does between its calls. Here, too,"
            " the range is isolated, every CPU's lists are drained and struct pages are prepared, by all columns alike,"
            " where they are not shared. Neither clears the page. Revert finds nothing in aged memory: each GiB holds a"
            " page in use. Share of copying: what memcpy() alone takes for the frames moved, measured in the same"
            " memory, of the time in the calls. "
            + words.EMULATED,
            "note",
        )
    )
    seen = set()
    for key, modes in found.items():
        if (key[0], key[3]) not in seen:
            paper.add(steps_picture(key, modes))
        seen.add((key[0], key[3]))
    for key, modes in columns(captures).items():
        paper.add(seeds_table(key, modes))
    paper.add(all_steps(found))
