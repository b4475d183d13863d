"""The HVO series: growing and shrinking a pool of huge pages. Times per page, and their ratios to the times without HVO."""

from pathlib import Path

import figures
import pictures
import seeds
import words
from paper import Figure, Heading
from pictures import Series
from records import Spread, of_kind
from rows import item, last, machine, median, rows_of, runs, spread_of_ratios, table

COLOUR = {"unbatched": "red", "batched": "orange", "on": "blue", "off": "grey"}
OPS = {"alloc": "grow", "free": "shrink"}
ROUND_US = (0.2, 5)
COUNTS = Path(__file__).resolve().parents[1] / "bench/counts"
MEANS = {"unbatched": "unbatched (before)", "batched": "batched (after)", "on": "on (ours)", "off": "off"}


def per_page(record):
    return record["ns"] / record["done"] / 1000


def net(row):
    """
    The Spread of microseconds a page without the time that the hosted machine spent on simulating hardware, or None: on other machines
    nothing is simulated, and of several CPUs that did so at once the total says nothing about how long they took.
    """
    hosted = [r for r in row.records if r.capture.where == "native" and isinstance(r.get("simulated_ns"), int) and r["threads"] == 1]
    return Spread([max(r["ns"] - r["simulated_ns"], 0) / r["done"] / 1000 for r in hosted]) if hosted else None


def net_ratio(row):
    base = row.base(mode="off")
    return words.times(words.ratio(net(row).median, net(base).median) if base and net(row) and net(base) else None)


def place(record):
    """The machine. Runs of `make bench T=s0-rows` differ in threads only, so each is a machine of its own."""
    return machine(record) + (f", {record.capture.name}" if record.capture.name.startswith("s0-rows") else "")


def most_asked(captures):
    """{capture, machine and state of the memory: the largest number of pages that a mode was asked for}; unbatched makes a part of it."""
    most = {}
    for r in of_kind(captures, "hvo"):
        most[state(r)] = max(most.get(state(r), 0), r["pages"])
    return most


def state(record):
    return id(record.capture), *(record[key] for key in ("cpus", "size", "source"))


def legs(captures):
    """A Row for each mode and operation. Rows that differ in these only can be compared with each other."""
    most = most_asked(captures)
    keys = {"CPUs": item("cpus"), "memory": item("source"), "size": item("size")}
    keys |= {"pages": lambda r: most[state(r)], "mode": item("mode"), "op": item("op")}
    return rows_of([r for r in of_kind(captures, "hvo") if r["done"]], machine=place, **keys)


def against_off(row):
    return row.ratio(per_page, mode="off")


def published():
    """The rows of the cover letter: HVO off and on, before the series and after it."""
    for name, pages, cpus, off0, on0, off1, on1 in seeds.HVO:
        modes = {"off, before": (off0, off0), "on, before": (on0, off0), "off, after": (off1, off1), "on, after": (on1, off1)}
        for mode, (seconds, off) in modes.items():
            for i, op in enumerate(OPS):
                us, ratio = seconds[i] / pages * 1e6, words.times(seconds[i] / off[i])
                key = [f"published, {name}", cpus or "?", "", "2M", pages, mode, op]
                cells = ["1", f"{pages:,}", f"{seconds[i]:.2f}", words.figure(us), ratio]
                yield key + cells + ["-"] * (len(COLUMNS) - len(cells))


def seconds_of(row):
    """Seconds for all pages, if the mode made all of them."""
    return f"{row.spread(item('ns')).median / 1e9:.2f}" if row.last["done"] == row.key["pages"] else "-"


def debt(row):
    return words.figure(row.records[0]["debt_open_ns" if row.key["op"] == "alloc" else "debt_split_ns"] / 1e6)


COLUMNS = {
    "threads": last("threads"),
    "made": lambda row: f"{row.last['done']:,}",
    "seconds": seconds_of,
    "us/page": median(per_page),
    "mode:off (range)": lambda row: words.spread(against_off(row), unit="x"),
    "net us/page": lambda row: words.spread(net(row)),
    "net mode:off": net_ratio,
    "runs": runs,
    "rounds": last("flushes"),
    "IPIs": last("ipis"),
    "splits": last("splits"),
    "frames saved": last("frames_saved"),
    "debt ms": debt,
}


def costs(grow, shrink):
    """The four costs of one run, us a page: opening before, growing, shrinking, splitting after."""
    pages = grow["done"] * 1000
    blocks = 512 if grow["size"] == "1G" else 1
    split = grow["debt_split_ns"] / grow["debt_blocks"] / 1000 * blocks
    return (grow["debt_open_ns"] / pages, grow["ns"] / pages, shrink["ns"] / pages, split)


def costs_of(row):
    """{turn: those of every run of a mode whose split blocks were counted}."""
    free = row.beside(op="free")
    shrinks = free.by_turn(free.records) if free else {}
    counted = {turn: grow for turn, grow in row.by_turn(row.records).items() if isinstance(grow.get("debt_blocks"), int) and grow["debt_blocks"] > 0}
    return {turn: costs(grow, shrinks[turn]) for turn, grow in counted.items() if turn in shrinks}


def in_all_by_turn(row):
    return {turn: sum(run) for turn, run in costs_of(row).items()}


def in_all_of(row):
    return Spread([*in_all_by_turn(row).values()])


def in_all_ratio(row):
    off = row.base(mode="off")
    return words.spread(spread_of_ratios(in_all_by_turn(row), in_all_by_turn(off)) if off else None, unit="x")


def part(number):
    return lambda row: words.figure(Spread([run[number] for run in costs_of(row).values()]).median)


def split(key):
    return lambda row: words.figure(row.beside(op="free").last.get(f"split_{key}_ns", 0) / 1000)


def in_all(found):
    """The sum of what a mode does at once and of what it puts off."""
    rows = [row for row in found if row.key["op"] == "alloc" and costs_of(row)]
    columns = {"opening": part(0), "growing": part(1), "shrinking": part(2), "splitting": part(3)}
    columns |= {"in all (range)": lambda row: words.spread(in_all_of(row)), "mode:off (range)": in_all_ratio, "runs": runs}
    columns |= {"first block split, us": split("first"), "median": split("p50"), "p99": split("p99"), "longest": split("max")}
    return table("What it costs in all, us a page", rows, columns, ours=lambda row: row.key["mode"] == "on")


def fresh(found, op):
    """Rows of 2 MiB pages from fresh memory in QEMU; of several numbers of pages the last counts."""
    wanted = {"size": "2M", "memory": "fresh", "op": op}
    rows = [row for row in found if wanted.items() <= row.key.items() and row.last.capture.where != "native"]
    return {(row.key["CPUs"], row.key["mode"]): row for row in sorted(rows, key=lambda row: row.key["pages"]) if against_off(row)}


def theirs(machine_number, mode, op):
    """The published ratio to off of a mode, or None."""
    _, _, _, off0, on0, off1, on1 = seeds.HVO[machine_number]
    on, off = {"unbatched": (on0, off0), "batched": (on1, off1)}.get(mode, (None, None))
    return on and on[list(OPS).index(op)] / off[list(OPS).index(op)]


def implied(machine_number):
    """Microseconds a page that the series saved: about one round."""
    _, pages, _, _, before, _, after = seeds.HVO[machine_number]
    return (before[0] - after[0]) / pages * 1e6


def each(key):
    return lambda row: words.figure(row.last[key] / row.last["done"])


def price(row):
    return " to ".join(words.figure(us * row.last["flushes"] / row.last["done"]) for us in ROUND_US)


def without_host(found):
    """The ratios of all runs beside the published ones, and what a page costs wherever it is counted."""
    counted = figures.parse(COUNTS.read_text(encoding="utf-8"))[1]

    def instructions(row):
        op = counted.get(f"pool-2M-{row.key['mode']}.{OPS[row.key['op']]}")
        return words.figure(op and op.insns)

    columns = {
        "mode:off here": lambda row: words.spread(against_off(row), unit="x"),
        "published, 8 sockets": lambda row: words.times(theirs(0, row.key["mode"], row.key["op"])),
        "published, VM": lambda row: words.times(theirs(1, row.key["mode"], row.key["op"])),
        "rounds a page": each("flushes"),
        "IPIs a page": each("ipis"),
        "instructions a page": instructions,
        "hardware, us for rounds": price,
        "runs": runs,
    }
    rows = [row for op in OPS for row in fresh(found, op).values()]
    return table("Beside the published ratios, and without the host", rows, columns, ours=lambda row: row.key["mode"] == "on")


def cpus_picture(found, op, name):
    """Time per page, divided by that of off, against CPUs; one line for each mode, and the published VM at its number of CPUs."""
    series, rows = [], fresh(found, op)
    for mode in ("unbatched", "batched", "on"):
        points = []
        for (cpus, row_mode), row in rows.items():
            if row_mode == mode:
                measured = against_off(row)
                points.append((cpus, measured.median, measured.low, measured.high))
        series.append(Series(MEANS[mode], points, COLOUR[mode]))
    if any(s.points for s in series):
        for mode, label in (("unbatched", "before, published"), ("batched", "after, published")):
            series.append(Series(label, [(seeds.HVO[1][2], theirs(1, mode, op))], COLOUR[mode], dashed=True))
    what = {"alloc": "growing", "free": "shrinking"}[op]
    marks = sorted({252, *(cpus for cpus, _ in rows)})
    svg = pictures.lines(name, series, "CPUs", f"{what}: time per page, off = 1", logx=2, level=(1, "off"), xticks=marks)
    caption = f"{what.capitalize()} against the number of CPUs; bars are the range of the runs. Published: a VM with 252."
    return Figure(name, svg, caption)


def headline(captures):
    """One line of the summary: before, after and ours as multiples of off, for growing with the largest number of CPUs measured."""
    rows = fresh([row for row in legs(captures) if "," not in row.key["machine"].removeprefix("QEMU,")], "alloc")
    cpus = max((cpus for cpus, mode in rows if mode == "on"), default=None)
    if cpus is None:
        return None
    chosen = [rows.get((cpus, mode)) for mode in ("unbatched", "batched", "on")]
    cells = [words.spread(row and against_off(row), unit="x") for row in chosen]
    published_vm = [words.times(theirs(1, mode, "alloc")) for mode in ("unbatched", "batched")]
    where = words.place(rows[cpus, "on"].last.capture.where, cpus)
    return ["HVO series, grow a pool of 2 MiB pages: time per page, off = 1", *published_vm, *cells, where, len(rows[cpus, "on"].records)]


def section(paper, captures):
    found = legs(captures)
    if not found:
        return
    paper.add(Heading("HVO series: a pool of huge pages grows and shrinks"))
    paper.text(words.prose("hvo"))
    title = "Growing (alloc) and shrinking (free) a pool: times, and multiples of HVO off on the same machine"
    paper.add(table(title, found, COLUMNS, list(published()), ours=lambda row: row.key["mode"] == "on"))
    paper.note(words.prose("hvo.not-comparable"))
    paper.add(cpus_picture(found, "alloc", "hvo-grow"), cpus_picture(found, "free", "hvo-shrink"), without_host(found))
    paper.text(words.prose("hvo.without-host", hardware=implied(0), machine=implied(1)))
    paper.add(in_all(found))
    paper.text(words.prose("hvo.in-all"))
