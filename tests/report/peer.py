"""Linux beside Ashlar: what `make bench-linux` measured, as ratios. A ratio above 1: Linux takes longer."""

import re

import hvo
import pictures
import words
from contig import overall
from paper import Figure, Heading, Table, Text
from pictures import Series
from records import Spread, of_kind


def series_of(record):
    """6.12 of 6.12.107+deb13-cloud-amd64."""
    return ".".join(re.split(r"[.+-]", record["kernel"])[:2])


def pools(captures):
    """{(cpus, series, optimise, op): (Spread of us per page, pages)}."""
    found = {}
    for r in of_kind(captures, "linux", what="hvo"):
        if r.get("done") and r.get("op") in ("alloc", "free") and r.get("optimise") in (0, 1):
            found.setdefault((r["cpus"], series_of(r), r.get("optimise"), r["op"]), []).append(r)
    return {key: (Spread([r["ns"] / r["done"] / 1000 for r in rs]), rs[-1]["done"]) for key, rs in found.items()}


def ours(captures, wheres):
    """{(cpus, mode, op): Spread of us per page}, fresh memory, of the emulator that Linux ran in."""
    found = {}
    for (where, cpus, size, source, busy), modes in hvo.largest(hvo.legs(captures)).items():
        if where in wheres and (size, source, busy) == ("2M", "fresh", 0):
            for (mode, op), records in modes.items():
                found[cpus, mode, op] = hvo.per_page(records)
    return found


# Linux's state, and Ashlar's mode that does the same; then what Ashlar does instead.
ALIKE = {("6.1", 0): "off", ("6.1", 1): "unbatched", ("6.12", 0): "off", ("6.12", 1): "batched"}


def pool_table(linux, here):
    rows = []
    for (cpus, series, optimise, op), (spread, pages) in sorted(linux.items()):
        alike = ALIKE.get((series, optimise), "off")
        same, on = here.get((cpus, alike, op)), here.get((cpus, "on", op))
        off = linux.get((cpus, series, 0, op))
        rows.append(
            [
                f"Linux {series}",
                cpus,
                "on" if optimise else "off",
                op,
                pages,
                spread.runs,
                words.spread(spread),
                words.times(off and spread.median / off[0].median),
                f"{alike} {words.figure(same.median)}" if same else "-",
                words.times(same and spread.median / same.median),
                words.figure(on and on.median),
                words.times(on and spread.median / on.median),
            ]
        )
    head = [
        "kernel",
        "CPUs",
        "HVO",
        "op",
        "pages",
        "runs",
        "us/page",
        "on : off",
        "Ashlar, same technique",
        "Linux : that",
        "Ashlar, ours",
        "Linux : ours",
    ]
    return Table(head, rows, "A pool of 2 MiB pages (S0): microseconds a page")


def pool_picture(linux, here, op):
    def line(label, colour, values, dashed=False):
        return Series(label, [(cpus, s.median, s.low, s.high) for cpus, s in values], colour, dashed)

    def of_linux(series, optimise):
        return [(key[0], value[0]) for key, value in linux.items() if key[1:] == (series, optimise, op)]

    def of_ours(mode):
        return [(key[0], value) for key, value in here.items() if key[1:] == (mode, op)]

    lines = [
        line("Linux 6.1, HVO on", "red", of_linux("6.1", 1)),
        line("Ashlar unbatched", "red", of_ours("unbatched"), True),
        line("Linux 6.12, HVO on", "orange", of_linux("6.12", 1)),
        line("Ashlar batched", "orange", of_ours("batched"), True),
        line("Linux 6.12, HVO off", "grey", of_linux("6.12", 0)),
        line("Ashlar on (ours)", "blue", of_ours("on"), True),
    ]
    what = "Growing" if op == "alloc" else "Shrinking"
    svg = pictures.lines(f"linux-{op}", lines, "CPUs", "us a page", logx=2, logy=10)
    return Figure(f"linux-{op}", svg, f"{what} a pool, Linux (solid) and Ashlar (dashed), in the same QEMU.")


def giga_table(captures, wheres):
    rows = []
    mine = {mode: overall(steps) for mode, steps in fresh_steps(captures, wheres).items()}
    groups = {}
    for r in of_kind(captures, "linux", what="giga", op="alloc"):
        if r.get("done"):
            groups.setdefault((series_of(r), r["cpus"], r.get("optimise")), []).append(r)
    for (series, cpus, optimise), records in groups.items():
        ms = Spread([r["ns"] / r["done"] / 1e6 for r in records])
        cells = [words.figure(mine[mode][2]) if mode in mine else "-" for mode in ("skip", "index")]
        cells += [words.times(ms.median / mine[mode][2]) if mode in mine else "-" for mode in ("skip", "index")]
        rows.append(
            [
                f"Linux {series}",
                cpus,
                "on" if optimise else "off",
                sum(r["done"] for r in records),
                words.spread(ms),
                *cells,
            ]
        )
    head = [
        "kernel",
        "CPUs",
        "HVO",
        "pages",
        "ms/page (steps of ten)",
        "Ashlar skip",
        "Ashlar index (ours)",
        "Linux : skip",
        "Linux : ours",
    ]
    return Table(head, rows, "Pages of 1 GiB at run time (S4): milliseconds a page") if rows else None


def fresh_steps(captures, wheres):
    found = {}
    for r in of_kind(captures, "contig", memory="fresh"):
        if r.capture.where in wheres:
            found.setdefault(r["mode"], []).append(r)
    return found


def boots(captures):
    """{(GiB, cpus, kernel): [(ms for all struct pages, ms to ready or to the first program or None)]}."""
    found = {}

    def add(kernel, cpus, memory, ms, ready_ns):
        key = (-(-memory // (1 << 30)), cpus, kernel)
        found.setdefault(key, []).append((ms, ready_ns[0] / 1e6 if ready_ns else None))

    for r in of_kind(captures, "linux", what="memmap"):
        ready = [other["ns"] for other in of_kind([r.capture], "linux", what="ready")]
        add(f"Linux {series_of(r)}", r["cpus"], r.get("ram_bytes", 0), r["ns"] / 1e6, ready)
    for capture in captures:
        for boot in of_kind([capture], "boot")[:1] if "memmap_ms" in capture.facts else ():
            ms = float(capture.facts["memmap_ms"])
            add(OURS, boot["cpus_started"], boot["ram_bytes"], ms, [boot["ns_to_ready"]])
    return found


OURS = "Ashlar, memmap=parallel"


def boot_table(captures):
    found = boots(captures)
    rows = []
    for (memory, cpus, kernel), measured in sorted(found.items()):
        ms = Spread([one[0] for one in measured])
        ready = [one[1] for one in measured if one[1] is not None]
        mine = found.get((memory, cpus, OURS))
        beside = mine and kernel != OURS and Spread([one[0] for one in mine]).median
        rows.append(
            [
                kernel,
                cpus,
                f"{memory} GiB",
                ms.runs,
                words.spread(ms),
                words.times(ms.median / beside) if beside else "-",
                words.spread(Spread(ready)) if ready else "-",
            ]
        )
    head = ["kernel", "CPUs", "memory", "boots", "memmap init ms", "Linux : Ashlar", "ms to its first program, or ready"]
    title = "Start (S1): all struct pages at boot; memory that QEMU's host gives for the first time, to both"
    return Table(head, rows, title) if rows else None


def section(paper, captures):
    linux = pools(captures)
    if not of_kind(captures, "linux"):
        return
    wheres = {r.capture.where for r in of_kind(captures, "linux")}
    here = ours(captures, wheres)
    paper.add(Heading("Linux beside Ashlar"))
    paper.add(
        Text(
            "The distribution's kernels in the same QEMU on the same host: 6.1, before the batching of S0, and 6.12,"
            " with it. A ratio above 1 means that Linux takes longer."
        )
    )
    paper.add(
        Text(
            "Not comparable: Linux does more for each page. It charges and accounts it (hugetlb cgroups, vmstat, node"
            " counters), keeps reservations and surplus, takes locks that others share, goes through sysfs, and its"
            " interrupts and timers run meanwhile. Its time includes reading its clock (what=nothing in the records)."
            " Same technique is the same order of flushes, not the same code. Growing 128 or 1,024 pages instead of"
            " 4,096 makes little difference to 6.1, as each page pays for itself. "
            + words.EMULATED,
            "note",
        )
    )
    if linux:
        paper.add(pool_table(linux, here), pool_picture(linux, here, "alloc"), pool_picture(linux, here, "free"))
    paper.add(giga_table(captures, wheres), boot_table(captures))
