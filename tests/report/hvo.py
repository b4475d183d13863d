"""The HVO series: growing and shrinking a pool of huge pages. Times per page, and their ratios to the times without HVO."""

import pictures
import seeds
import words
from paper import Figure, Heading, Table, Text
from pictures import Series
from records import Spread, grouped, of_kind

COLOUR = {"unbatched": "red", "batched": "orange", "on": "blue", "off": "grey"}
MEANS = {"unbatched": "unbatched (before)", "batched": "batched (after)", "on": "on (ours)", "off": "off"}


def per_page(records):
    """Microseconds a page, over all runs."""
    return Spread([r["ns"] / max(r["done"], 1) / 1000 for r in records])


def net_per_page(records):
    """
    Microseconds a page without the time that the hosted machine spent on simulating hardware, or None: on other machines nothing is
    simulated, and of several CPUs that did so at once the total says nothing about how long they took.
    """
    hosted = [r for r in records if r.capture.where == "native" and isinstance(r.get("simulated_ns"), int) and r["threads"] == 1]
    return Spread([max(r["ns"] - r["simulated_ns"], 0) / max(r["done"], 1) / 1000 for r in hosted]) if hosted else None


def legs(captures):
    """
    {(where, cpus, size, source, busy, pages): {(mode, op): records}}. The records of one key can be compared with each other.
    `pages` is the largest number that a mode of the run was asked for; unbatched makes only a part of it.
    """
    result = {}
    for capture in captures:
        for key, records in grouped(of_kind([capture], "hvo"), "cpus", "size", "source", "busy").items():
            modes = result.setdefault((*key, max(r["pages"] for r in records)), {})
            for record in records:
                if record["done"]:
                    modes.setdefault((record["mode"], record["op"]), []).append(record)
    return dict(
        sorted(
            result.items(),
            key=lambda item: (item[0][0] == "native", *map(str, item[0][2:5]), *map(float, (item[0][1], item[0][5]))),
        )
    )


def largest(found):
    """For each machine and state, only the run with the most pages: {(where, cpus, size, source, busy): modes}."""
    return {key[:5]: modes for key, modes in found.items()}  # in ascending order of pages: the last one stays


def against_off(modes, mode, op):
    """Median time per page divided by the median of off, in the same state."""
    if (mode, op) not in modes or ("off", op) not in modes:
        return None
    return words.ratio(per_page(modes[mode, op]).median, per_page(modes["off", op]).median)


def published():
    rows = []
    for machine, pages, cpus, off0, on0, off1, on1 in seeds.HVO:
        for when, off, on in (("before", off0, on0), ("after", off1, on1)):
            rows.append(
                [machine, when, f"{pages:,}"]
                + [f"{seconds:.2f}" for seconds in off + on]
                + [words.figure(seconds / pages * 1e6) for seconds in off + on]
                + [words.times(on[i] / off[i]) for i in (0, 1)]
            )
    head = [
        "published on",
        "series",
        "pages",
        "off alloc s",
        "free s",
        "on alloc s",
        "free s",
        "off alloc us/page",
        "free",
        "on alloc us/page",
        "free",
        "on : off alloc",
        "free",
    ]
    return Table(head, rows, "Published: seconds for all pages, and what that is for each", left=2)


SEED = {"unbatched": "before", "batched": "after", "on": "ours"}


def of_seed(capture):
    """Whether the capture is from `make bench T=s0-rows`, the published rows of this series. Some of these differ in threads only."""
    return capture.name.startswith("s0-rows")


def our_rows(captures, pages):
    """Our figures for one published row: a line for each console and mode."""
    for capture in captures:
        for (where, cpus, size, source, busy, most), modes in legs([capture]).items():
            if most != pages or size != "2M" or busy or ("off", "alloc") not in modes:
                continue
            for mode in [mode for mode in SEED if (mode, "alloc") in modes]:
                made = modes[mode, "alloc"][-1]
                times = [modes[m, op] for m in ("off", mode) for op in ("alloc", "free")]
                seconds = [per_page(leg).median * pages / 1e6 if leg[-1]["done"] == pages else None for leg in times]
                yield (
                    [words.WHERE.get(where, where), cpus, f"{SEED[mode]}, memory {source}", made["threads"], f"{made['done']:,}"]
                    + ["-" if s is None else f"{s:.2f}" for s in seconds]
                    + [words.figure(per_page(leg).median) for leg in times]
                )


def seed_rows(captures):
    """The published rows with ours beside them: seconds for all pages, if a mode made all of them, and microseconds a page."""
    rows, ours = [], []
    for machine, pages, cpus, off0, on0, off1, on1 in seeds.HVO:
        for when, off, on in (("before", off0, on0), ("after", off1, on1)):
            rows.append(
                [machine, cpus or "?", when, 1, f"{pages:,}"]
                + [f"{seconds:.2f}" for seconds in off + on]
                + [words.figure(seconds / pages * 1e6) for seconds in off + on]
            )
        for row in our_rows(captures, pages):
            ours.append(len(rows))
            rows.append(row)
    if not ours:
        return None
    head = ["machine", "CPUs", "", "CPUs that make", "pages", "off alloc s", "free s", "on alloc s", "free s"]
    head += ["off alloc us/page", "free", "on alloc us/page", "free"]
    return Table(head, rows, "The seed's own rows; ours with all CPUs on the host's few", left=3, ours=tuple(ours))


def beside(found):
    """Published figures and ours in one measure: multiples of the time that the same machine needs without HVO."""
    rows, ours = [], []
    for machine, count, cpus, off0, on0, off1, on1 in seeds.HVO:
        pairs = [words.times(on[i] / off[i]) for on, off in ((on0, off0), (on1, off1)) for i in (0, 1)]
        rows.append([machine, cpus or "?", "published", f"{count:,}"] + pairs + ["-", "-"])
    for (where, cpus, size, source, busy, pages), modes in found.items():
        if size != "2M" or busy:
            continue
        cells = [
            words.times(against_off(modes, mode, op))
            for mode in ("unbatched", "batched", "on")
            for op in ("alloc", "free")
        ]
        if set(cells) != {"-"}:
            ours.append(len(rows))
            rows.append([words.WHERE.get(where, where), cpus, f"memory {source}", f"{pages:,}"] + cells)
    head = ["machine", "CPUs", "", "pages", "before: alloc", "free", "after: alloc", "free", "ours: alloc", "free"]
    return Table(head, rows, "Time per page as a multiple of HVO off on the same machine", left=3, ours=tuple(ours))


def costs(grow, shrink):
    """The four costs of one run, us a page: opening before, growing, shrinking, splitting after."""
    pages = grow["done"] * 1000
    blocks = 512 if grow["size"] == "1G" else 1
    split = grow["debt_split_ns"] / grow["debt_blocks"] / 1000 * blocks
    return (grow["debt_open_ns"] / pages, grow["ns"] / pages, shrink["ns"] / pages, split)


def costs_of(modes, mode):
    """Those of every run of a mode whose split blocks were counted."""
    pairs = zip(modes.get((mode, "alloc"), []), modes.get((mode, "free"), []))
    return [costs(grow, shrink) for grow, shrink in pairs if isinstance(grow.get("debt_blocks"), int) and grow["debt_blocks"] > 0]


def in_all(found):
    """The sum of what a mode does at once and of what it puts off."""
    rows, ours = [], []
    for (where, cpus, size, source, busy, _), modes in found.items():
        off = costs_of(modes, "off")
        base = Spread([sum(run) for run in off]).median if off else None
        for mode in MEANS:
            runs = costs_of(modes, mode)
            if not runs or busy:
                continue
            if mode == "on":
                ours.append(len(rows))
            total = Spread([sum(run) for run in runs])
            parts = [words.figure(Spread(list(part)).median) for part in zip(*runs)]
            first = modes[mode, "free"][-1]
            split = [words.figure(first.get(f"split_{key}_ns", 0) / 1000) for key in ("first", "p50", "p99", "max")]
            ratio = words.times(words.ratio(total.median, base))
            rows.append([words.WHERE.get(where, where), cpus, source, size, MEANS[mode], *parts, words.spread(total), ratio, *split])
    head = ["machine", "CPUs", "memory", "size", "mode", "opening", "growing", "shrinking", "splitting", "in all (range)", ": off"]
    head += ["first block split, us", "median", "p99", "longest"]
    return Table(head, rows, "What it costs in all, us a page", left=1, ours=tuple(ours))


def net_cells(modes, mode, op):
    """The net time of a leg and its ratio to that of off, as cells."""
    net, off = net_per_page(modes[mode, op]), net_per_page(modes.get(("off", op), []))
    ratio = words.ratio(net.median, off.median) if net and off else None
    return [words.spread(net) if net else "-", words.times(ratio)]


def all_legs(found):
    rows = []
    for (where, cpus, size, source, busy, _), modes in found.items():
        for (mode, op), records in modes.items():
            last = records[-1]
            debt = records[0]["debt_open_ns"] if op == "alloc" else records[0]["debt_split_ns"]
            rows.append(
                [
                    words.WHERE.get(where, where),
                    cpus,
                    source,
                    size,
                    MEANS.get(mode, mode),
                    op,
                    last["done"],
                    len(records),
                    words.spread(per_page(records)),
                    words.times(against_off(modes, mode, op)),
                    *net_cells(modes, mode, op),
                    last["flushes"],
                    last["ipis"],
                    last["splits"],
                    last["frames_saved"],
                    words.figure(debt / 1e6),
                    busy,
                ]
            )
    head = [
        "machine",
        "CPUs",
        "memory",
        "size",
        "mode",
        "op",
        "pages",
        "runs",
        "us/page: median (range)",
        ": off",
        "net us/page",
        ": off",
        "rounds",
        "IPIs",
        "splits",
        "frames saved",
        "debt ms",
        "busy",
    ]
    return Table(head, rows, "Every leg measured", left=1, folded=True)


def cpus_picture(found, op, name):
    """Time per page, divided by that of off, against CPUs; one line for each mode, and the published VM at its number of CPUs."""
    series, marks = [], [252]
    for mode in ("unbatched", "batched", "on"):
        points = []
        for (where, cpus, size, source, busy), modes in largest(found).items():
            if (size, source, busy) != ("2M", "fresh", 0) or where == "native":
                continue
            value = against_off(modes, mode, op)
            if value:
                base = per_page(modes["off", op]).median
                measured = per_page(modes[mode, op])
                points.append((cpus, value, measured.low / base, measured.high / base))
                marks.append(cpus)
        series.append(Series(MEANS[mode], points, COLOUR[mode]))
    _, _, cpus, off0, on0, off1, on1 = seeds.HVO[1]
    at = ("alloc", "free").index(op)
    if any(s.points for s in series):
        series.append(Series("before, published", [(cpus, on0[at] / off0[at])], "red", dashed=True))
        series.append(Series("after, published", [(cpus, on1[at] / off1[at])], "orange", dashed=True))
    what = {"alloc": "growing", "free": "shrinking"}[op]
    svg = pictures.lines(
        name,
        series,
        "CPUs",
        f"{what}: time per page, off = 1",
        logx=2,
        logy=10,
        level=(1, "off"),
        xticks=sorted(set(marks)),
    )
    return Figure(
        name,
        svg,
        f"{what.capitalize()} against the number of CPUs; bars are the range of the runs. Published: a VM with 252.",
    )


def pages_picture(captures):
    """Time of a whole grow against the number of pages, if several numbers were measured on one machine."""
    groups = grouped(
        [r for r in of_kind(captures, "hvo", op="alloc", size="2M", source="fresh") if r["done"]], "cpus", "mode"
    )
    sizes, best = {}, None
    for (where, cpus, mode), records in groups.items():
        by_pages = sizes.setdefault((where, cpus), {}).setdefault(mode, {})
        for record in records:
            by_pages.setdefault(record["done"], []).append(record["ns"] / 1e6)
    for key, modes in sizes.items():
        many = max(len(by_pages) for by_pages in modes.values())
        if many > 1 and (best is None or many > best[0]):
            best = (many, key)
    if not best:
        return None
    series = [
        Series(
            MEANS.get(mode, mode),
            [(pages, s.median, s.low, s.high) for pages, ms in by_pages.items() for s in [Spread(ms)]],
            COLOUR.get(mode),
        )
        for mode, by_pages in sizes[best[1]].items()
    ]
    svg = pictures.lines("hvo-pages", series, "pages of 2 MiB", "time to grow, ms", logx=2, logy=10)
    return Figure("hvo-pages", svg, f"Time to grow the pool against its size: {words.place(*best[1])}.")


def headline(captures):
    """One line of the summary: before, after and ours as multiples of off, for growing with the largest number of CPUs measured."""
    best = None
    for key, modes in largest(legs(captures)).items():
        if (
            key[2:] == ("2M", "fresh", 0)
            and against_off(modes, "on", "alloc")
            and (best is None or key[1] > best[0][1])
        ):
            best = (key, modes)
    if not best:
        return None
    (where, cpus, *_), modes = best
    cells = [words.times(against_off(modes, mode, "alloc")) for mode in ("unbatched", "batched", "on")]
    _, _, _, off0, on0, off1, on1 = seeds.HVO[1]
    return [
        "HVO series, grow a pool of 2 MiB pages: time per page, off = 1",
        words.times(on0[0] / off0[0]),
        words.times(on1[0] / off1[0]),
        *cells,
        words.place(where, cpus),
    ]


def section(paper, captures):
    found = legs([capture for capture in captures if not of_seed(capture)])
    rows = seed_rows(captures)
    if not found and not rows:
        return
    paper.add(Heading("HVO series: a pool of huge pages grows and shrinks"))
    paper.add(
        Text(
            'Kravetz, "Batch hugetlb vmemmap modification operations", 2023-09. *off* keeps all struct pages of a huge'
            " page. *unbatched* frees seven of their eight frames with a TLB shootdown for every page and step;"
            " *batched* flushes once for all; *on*, ours, never builds tails that nobody asked for.".replace("*", "")
        )
    )
    paper.add(beside(found))
    paper.add(
        Text(
            "Not comparable: the published times are of Linux on other machines, which also accounts pages to cgroups,"
            " takes its locks against other users and clears nothing here either; Ashlar does what the technique needs"
            " and no more. Their pages are 500,000, ours a few thousand, and `unbatched` is measured with a sixteenth"
            " of them. On a host with fewer CPUs than the guest, an interrupt waits for its CPU to be run at all: that"
            " makes rounds dearer than on hardware. Hosted, an entry of the tables is changed by a system call of the host,"
            " for which every mode that remaps pays. *Net* is without the time of these calls; `make bench WHAT=hvo` counts the same"
            " work in three ways. "
            + words.EMULATED,
            "note",
        )
    )
    paper.add(
        cpus_picture(found, "alloc", "hvo-grow"), cpus_picture(found, "free", "hvo-shrink"), pages_picture(captures)
    )
    if rows:
        paper.add(rows)
    paper.add(in_all(found), published(), all_legs(found))
    paper.add(
        Text(
            "Rounds: shootdowns. IPIs: messages they took. Debt: what a mode leaves for another moment, opening the"
            " sections before (alloc) or giving every struct page of what came back (free). In all: every page is opened, made huge,"
            " given back and made small, two pages of 1 MiB from a block, while all other memory is held."
        )
    )
