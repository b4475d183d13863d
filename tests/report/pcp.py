"""The per-CPU list series: per-CPU page lists with and without a cached migratetype."""

import seeds
import words
from paper import Heading, Table
from records import Spread, of_kind
from rows import ONE_RUN, item, machine, median, rows_of, runs, table

WAYS = {"on": "on (before)", "first": "first (the first patch)", "each": "each (the series)", "off": "off (ours)"}
RATIOS = {
    "the first patch : before": ("first", "on"),
    "the series : before": ("each", "on"),
    "ours : the series": ("off", "each"),
    "ours : before": ("off", "on"),
}


def both(record):
    return record["ns_alloc"] + record["ns_free"]


def way_of(record):
    return WAYS.get(record["type_cache"], record["type_cache"])


def is_ours(row):
    return row.key["types"] == WAYS["off"]


def number(text):
    return float(text.replace(",", ""))


def published():
    rows = []
    for name, (before, before_by), (after, after_by) in seeds.PCP:
        ratio = f"{number(after) / number(before):.4f}" if name in ("seconds time elapsed", "instructions") else "-"
        rows.append([name, f"{before} (+- {before_by})", f"{after} (+- {after_by})", ratio])
    title = "Published: perf stat of batches of 10,000 pages, allocated and freed"
    return Table(["", "before", "after the first patch", "after : before"], rows, title)


def unit(record):
    return "instructions" if record.capture.where == "icount" else "ns"


def rounds(captures):
    """A Row for each machine and round in which every way had its turn."""
    rows = rows_of(of_kind(captures, "pcp"), machine=machine, unit=unit, capture=lambda r: id(r.capture), round=item("run"))
    return [row for row in rows if not row.is_cold and WAYS.keys() <= {r["type_cache"] for r in row.records}]


def ratios_of(turns, after, before):
    """The Spread of after : before of the rounds of one machine."""
    medians = ([turn.spread(both, item("type_cache"), way).median for way in (after, before)] for turn in turns)
    return Spread([now / was for now, was in medians])


def elapsed():
    _, before, after = next(row for row in seeds.PCP if row[0] == "seconds time elapsed")
    return before[0], after[0], number(after[0]) / number(before[0])


def by_machine(turns):
    found = {}
    for turn in turns:
        found.setdefault((turn.key["machine"], turn.key["unit"]), []).append(turn)
    return found


def ratios(turns):
    rows = [["published, time elapsed", f"{elapsed()[2]:.4f}", "-", "-", "-", "-"]]
    for (name, counted), of_machine in by_machine(turns).items():
        spreads = [ratios_of(of_machine, after, before) for after, before in RATIOS.values()]
        rows.append([f"ours, {name}, {counted} a page", *map(words.exact_ratio, spreads), len(of_machine)])
    caption = "Ratios, allocating and freeing together" + (ONE_RUN if all(row[-1] == 1 for row in rows[1:]) else "")
    return Table(["", *RATIOS, "rounds"], rows, caption, ours=tuple(range(1, len(rows))))


def lookups(key, pages):
    return lambda row: f"{row.records[0].get(key, 0) / row.records[0][pages]:.3f}"


def given_back(row):
    return f"{row.last['drain_lookups']:,} for {row.last['drained']:,}"


def times(turns):
    columns = {
        "rounds": runs,
        "to allocate": median(item("ns_alloc")),
        "to free": median(item("ns_free")),
        "look-ups a page, fetching": lookups("fetch_lookups", "freed"),
        "freeing": lookups("lookups", "freed"),
        "look-ups for pages given back": given_back,
        "stale pages": lambda row: sum(r["stale"] for r in row.records) // len(row.records),
    }
    records = [r for turn in turns for r in turn.records]
    return table("A page", rows_of(records, machine=machine, unit=unit, types=way_of), columns, ours=is_ours)


def headline_pcp(captures):
    found = by_machine(rounds(captures))
    where = next((key for place in words.WHERE.values() for key in found if key[0] == place), None)
    if not where:
        return None
    before, after, ratio = elapsed()
    mine = [words.exact_ratio(ratios_of(found[where], way, "on")) for way in ("first", "off")]
    what = "Per-CPU list series, batches of 10,000 pages: time elapsed, before = 1"
    return [what, f"1 ({before} s)", f"{ratio:.4f} ({after} s)", "1", *mine, where[0], len(found[where])]


# ---- page_fault1 ----


def fault_rows(captures):
    """Rows of machines that ran every way. Runs in turn with Linux are left out: they stand beside Linux (peer.py)."""
    records = of_kind([c for c in captures if not c.name.startswith("peer-")], "page_fault")
    rows = rows_of(records, machine=machine, CPUs=item("cpus"), types=way_of)
    return [row for row in rows if all(row.beside(types=name) for name in WAYS.values())]


def published_faults():
    base = seeds.PAGE_FAULT1[0][1]
    rows = [
        [patch, f"{ops:.1f} (+- {ops_by})", f"{ops / base:.4f}", f"{share:.2f} (+- {share_by})"]
        for patch, ops, ops_by, share, share_by in seeds.PAGE_FAULT1
    ]
    head = ["up to this patch", "will-it-scale.1.processes", "patch:base", "% of cycles in get_pfnblock_flags_mask()"]
    return Table(head, rows, "Published: page_fault1, one process, pages from and to per-CPU lists only")


def faults(rows):
    columns = {
        "pages a second": median(item("ops")),
        "types:on (range)": lambda row: words.exact_ratio(row.ratio(item("ops"), types=WAYS["on"])),
        "runs": runs,
        "look-ups a page freed": lookups("lookups", "touched"),
        "look-ups for pages given back": given_back,
    }
    return table("page_fault1: a region of each CPU faulted in and unmapped, again and again", rows, columns, ours=is_ours, left=3)


def section(paper, captures):
    turns, faulted = rounds(captures), fault_rows(captures)
    if not turns and not faulted:
        return
    paper.add(Heading("Per-CPU list series: per-CPU page lists that cache no type"))
    paper.text(words.prose("pcp"))
    if turns:
        paper.add(published(), ratios(turns), times(turns))
        paper.note(words.prose("pcp.not-comparable"))
    if faulted:
        paper.add(published_faults(), faults(faulted))
        paper.note(words.prose("pcp.faults"))
