"""The contiguous-range series: finding 1 GiB pages at run time."""

import pictures
import seeds
import words
from paper import Figure, Heading, Table
from pictures import Series
from records import of_kind
from rows import ONE_RUN, item, place, ram, rows_of, table

MEMORIES = ("fresh", "booted", "aged")
COLOUR = {"vanilla": "red", "revert": "green", "skip": "orange", "strict": "purple", "step": "grey", "index": "blue"}
MEANS = {
    "vanilla": "vanilla (before)",
    "revert": "revert (the series' reference)",
    "skip": "skip (after)",
    "strict": "strict (the simpler fix)",
    "step": "step (Linux 7.0)",
    "index": "index (ours)",
}


def machines(records):
    """A Row for each machine and state of its memory, in the order of MEMORIES."""
    rows = rows_of(records, machine=place, size=ram, memory=item("memory"))
    return sorted(rows, key=lambda row: [*MEMORIES, row.key["memory"]].index(row.key["memory"]))


def steps_of(row, mode):
    return [r for r in row.records if r["mode"] == mode]


def overall(steps):
    """(pages, fastest, mean, slowest) in ms, of all steps together. The mean is exact, because each step says how many pages it had."""
    pages, total, previous = 0, 0.0, 0
    for step in sorted(steps, key=lambda r: r["total"]):
        count = step["total"] - previous if step["total"] > previous else step["step"]
        previous = step["total"]
        pages += count
        total += step["ns_mean"] * count
    return pages, min(s["ns_min"] for s in steps) / 1e6, total / pages / 1e6, max(s["ns_max"] for s in steps) / 1e6


def ms(ns, vanilla_ns):
    """A cell in the format of the published table: the value, and the percentage that it saves of vanilla's."""
    saved = f" ({100 * (vanilla_ns - ns) / vanilla_ns:.2f}%)" if vanilla_ns else ""
    return words.figure(ns / 1e6) + saved


DURATIONS = {
    "Duration User": lambda r: r["ns_elapsed"] - r["ns_system"],
    "Duration System": lambda r: r["ns_system"],
    "Duration Elapsed": lambda r: r["ns_elapsed"],
}
WORK = {
    "pages made": "pages",
    "struct pages read": "scanned_pages",
    "references given and taken": "references",
    "frames moved": "migrated_pages",
}


def seeds_table(row):
    """The published rows: the three published columns beside ours that do the same work, then our other columns."""
    best = {r["mode"]: r for r in sorted(row.records, key=lambda r: r["pages"])}
    mine = [best[mode] for mode in MEANS if mode in best]
    vanilla, booted = None if row.is_cold else best.get("vanilla"), row.key["memory"] == "booted"
    rows = []
    for name, field, *theirs in seeds.CONTIG:
        published = [f"{value:.2f} ({percent:.2f}%)" for value, percent in theirs] if booted else []
        rows.append([name, *published, *(ms(r[field], vanilla and vanilla[field]) for r in mine)])
    for name, *theirs in seeds.CONTIG_DURATION:
        rows.append([name, *(f"{value:.2f} s" for value in theirs if booted), *(f"{DURATIONS[name](r) / 1e9:.3f} s" for r in mine)])
    for name, field in WORK.items():
        rows.append([name, *["-"] * (3 if booted else 0), *(f"{r[field]:,}" for r in mine)])
    if row.key["memory"] == "aged":
        rows.append(["share of copying", *(f"{r['copy_ns'] / r['ns_system']:.2f}" for r in mine)])
    names = [f"published {name}" for name in ("vanilla", "hugeallocrevert", "hugeallocfix") if booted]
    title = f"ms for a page, batches of ten, {row.key['memory']} memory: {row.key['machine']}, {row.key['size']}{ONE_RUN}"
    return Table(["latency", *names, *(MEANS[r["mode"]] for r in mine)], rows, title)


def mean_and_range(mode):
    def cell(row):
        steps = steps_of(row, mode)
        return "{1} ({0} to {2})".format(*map(words.figure, overall(steps)[1:])) if steps else "-"

    return cell


def runs_of(row):
    """The most runs of a search: each has the first step once."""
    firsts = [(r["mode"], r["total"]) for r in row.records]
    return max(firsts.count((mode, min(total for other, total in firsts if other == mode))) for mode, _ in firsts)


def beside(rows):
    low, high, mean = seeds.CONTIG[0], seeds.CONTIG[-2], seeds.CONTIG[-1]
    theirs = [f"{words.figure(mean[i][0])} ({words.figure(low[i][0])} to {words.figure(high[i][0])})" for i in (2, 3, 4)]
    published = ["published, Linux 6.3-rc6", "-", "booted", "-", *theirs, "-", "-", "-", "-"]
    columns = {"pages": lambda row: max(overall(steps_of(row, mode))[0] for mode in {r["mode"] for r in row.records})}
    columns |= {name: mean_and_range(mode) for mode, name in MEANS.items()} | {"runs": runs_of}
    return table("ms for a page of 1 GiB: mean (fastest to slowest)", rows, columns, [published], lambda row: True, left=3)


def steps_picture(row):
    where, memory = row.last.capture.where, row.key["memory"]
    series = []
    for mode, name in MEANS.items():
        points = [(r["total"], r["ns_mean"] / 1e6, r["ns_min"] / 1e6, r["ns_max"] / 1e6) for r in steps_of(row, mode)]
        series.append(Series(name, points, COLOUR[mode]))
    name = f"contig-{where}-{memory}"
    svg = pictures.lines(name, series, "1 GiB pages made", "ms for a page")
    return Figure(name, svg, f"Time for one more page, in steps of ten, {memory} memory: mean, fastest and slowest ({row.key['machine']}).")


def headline(captures):
    row = next((row for row in machines(of_kind(captures, "contig")) if row.key["memory"] == "fresh" and not row.is_cold), None)
    if not row:
        return None
    ours = [mean_and_range(mode)(row) for mode in ("vanilla", "skip", "index")]
    _, _, vanilla, _, fix = seeds.CONTIG[-1]
    theirs = [words.figure(vanilla[0]), words.figure(fix[0])]
    return ["Contiguous-range series, make a 1 GiB page: mean ms (fastest to slowest)", *theirs, *ours, row.key["machine"], runs_of(row)]


def section(paper, captures):
    rows = machines(of_kind(captures, "contig"))
    if not rows:
        return
    paper.add(Heading("Contiguous-range series: pages of 1 GiB are made at run time"))
    paper.text(words.prose("contig"))
    paper.add(beside(rows))
    paper.note(words.prose("contig.not-comparable"))
    drawn = {(row.last.capture.where, row.key["memory"]): row for row in reversed(rows)}
    paper.add(*(steps_picture(row) for row in drawn.values()))
    paper.add(*(seeds_table(row) for row in machines(of_kind(captures, "contig_table"))))
