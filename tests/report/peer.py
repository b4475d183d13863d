"""Linux beside Ashlar: what `make bench-linux` measured, as ratios. A ratio above 1: Linux takes longer.

Ashlar's side is of the same session, in turn with Linux (consoles peer-*), if there are any of those; else of what `make bench` measured
in the same emulator. Each kernel has a row; beside it Ashlar with the technique that this kernel has, and Ashlar as it is.
"""

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


def ordered(series):
    """6.1 before 6.12."""
    return tuple(int(part) if part.isdigit() else 0 for part in series.split("."))


def merged(series, since):
    """Whether a series has what was merged in another one."""
    return ordered(series) >= ordered(since)


def of_the_session(captures):
    return [c for c in captures if c.name.startswith("peer-")] or captures


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


# What is merged since when.
S0_SINCE, S2_SINCE, S4_STEP_SINCE = "6.7", "7.0", "7.0"


def alike(series, optimise):
    """Ashlar's mode that does what this kernel does."""
    return "off" if not optimise else "batched" if merged(series, S0_SINCE) else "unbatched"


def pool_table(linux, here):
    rows = []
    for (cpus, series, optimise, op), (spread, pages) in sorted(linux.items(), key=lambda i: (i[0][0], ordered(i[0][1]), *i[0][2:])):
        mode = alike(series, optimise)
        same, on = here.get((cpus, mode, op)), here.get((cpus, "on", op))
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
                f"{mode} {words.figure(same.median)}" if same else "-",
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


def newest(linux):
    return max((series for _, series, _, _ in linux), key=ordered)


def pool_picture(linux, here, op):
    def line(label, colour, values, dashed=False):
        return Series(label, [(cpus, s.median, s.low, s.high) for cpus, s in values], colour, dashed)

    def of_linux(series, optimise):
        return [(key[0], value[0]) for key, value in linux.items() if key[1:] == (series, optimise, op)]

    def of_ours(mode):
        return [(key[0], value) for key, value in here.items() if key[1:] == (mode, op)]

    new = newest(linux)
    lines = [
        line("Linux 6.1, HVO on", "red", of_linux("6.1", 1)),
        line("Ashlar unbatched", "red", of_ours("unbatched"), True),
        line("Linux 6.12, HVO on", "orange", of_linux("6.12", 1)),
        line("Ashlar batched", "orange", of_ours("batched"), True),
        line(f"Linux {new}, HVO on", "purple", of_linux(new, 1) if new not in ("6.1", "6.12") else []),
        line(f"Linux {new}, HVO off", "grey", of_linux(new, 0)),
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
    for (series, cpus, optimise), records in sorted(groups.items(), key=lambda i: (ordered(i[0][0]), i[0][1], i[0][2] or 0)):
        ms = Spread([r["ns"] / r["done"] / 1e6 for r in records])
        mode = "step" if merged(series, S4_STEP_SINCE) else "skip"
        same, index = mine.get(mode), mine.get("index")
        cells = [f"{mode} {words.figure(same[2])}" if same else "-", words.times(same and ms.median / same[2])]
        cells += [words.figure(index and index[2]), words.times(index and ms.median / index[2])]
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
        "Ashlar, same technique",
        "Linux : that",
        "Ashlar, index (ours)",
        "Linux : ours",
    ]
    return Table(head, rows, "Pages of 1 GiB at run time (S4): milliseconds a page") if rows else None


def fresh_steps(captures, wheres):
    found = {}
    for r in of_kind(captures, "contig", memory="fresh"):
        if r.capture.where in wheres:
            found.setdefault(r["mode"], []).append(r)
    return found


def gib_of(record):
    return -(-record.get("ram_bytes", 0) // (1 << 30))


def name_key(kernel):
    return (kernel.startswith("Ashlar"), ordered(kernel.split()[-1]), kernel)


def boots(captures):
    """{(GiB, cpus, kernel): [(ms for all struct pages or None, ms to ready or to the first program)]}: boots without pools."""
    found = {}
    for r in of_kind(captures, "linux", what="ready"):
        if not r.get("pages"):
            made = of_kind([r.capture], "linux", what="memmap")
            key = (gib_of(r), r["cpus"], f"Linux {series_of(r)}")
            found.setdefault(key, []).append((made[0]["ns"] / 1e6 if made else None, r["ns"] / 1e6))
    for r in of_kind(captures, "boot"):
        if r.get("memmap") in SAME_OR_OURS and not r.get("pool_pages") and r.capture.name.startswith("peer-"):
            ms = r["memmap_ns"] / 1e6 if r.get("memmap_ns") else None
            key = (gib_of(r), r["cpus_started"], f"Ashlar, memmap={r['memmap']}")
            if r["memmap"] != "lazy" or "boot-lazy" in r.capture.name:
                found.setdefault(key, []).append((ms, r["ns_to_ready"] / 1e6))
    return found


# memmap= of those that are shown: the series' technique, ours at boot, ours.
SAME_OR_OURS = ("parallel", "eager", "lazy")


def boot_table(captures):
    found = boots(captures)
    paired = {key[:2] for key in found if key[2].startswith("Ashlar")}
    found = {key: measured for key, measured in found.items() if key[:2] in paired or not paired}
    rows = []
    for (memory, cpus, kernel), measured in sorted(found.items(), key=lambda i: (*i[0][:2], name_key(i[0][2]))):
        made = [one[0] for one in measured if one[0] is not None]
        ms = Spread(made) if made else None
        cells = []
        for way in SAME_OR_OURS[:2]:
            mine = [one[0] for one in found.get((memory, cpus, f"Ashlar, memmap={way}"), []) if one[0]]
            beside = ms and mine and not kernel.startswith("Ashlar")
            cells.append(words.times(ms.median / Spread(mine).median) if beside else "-")
        rows.append(
            [
                kernel,
                cpus,
                f"{memory} GiB",
                len(measured),
                words.spread(ms) if ms else "nothing made",
                *cells,
                words.spread(Spread([one[1] for one in measured])),
            ]
        )
    head = [
        "kernel",
        "CPUs",
        "memory",
        "boots",
        "memmap init ms",
        "Linux : parallel (same technique)",
        "Linux : eager (ours)",
        "ms to its first program, or ready",
    ]
    title = "Start (S1): all struct pages at boot; memory that QEMU's host gives for the first time, to both"
    return Table(head, rows, title) if any(row[0].startswith("Linux") for row in rows) else None


def boot_pools(captures):
    """{(GiB, cpus, pages): {(kernel, HVO): [(ms for the pool, ms to ready)]}}: pools of 2 MiB pages made at boot."""
    found = {}

    def add(r, cpus, pages, side, pool_ns, ready_ns):
        found.setdefault((gib_of(r), cpus, pages), {}).setdefault(side, []).append((pool_ns / 1e6, ready_ns / 1e6))

    for r in of_kind(captures, "linux", what="boot_pool"):
        if r.get("done") == r.get("pages") and r.get("ready_ns"):
            add(r, r["cpus"], r["pages"], (f"Linux {series_of(r)}", "on" if r.get("optimise") else "off"), r["ns"], r["ready_ns"])
    for r in of_kind([c for c in captures if c.name.startswith("peer-")], "boot"):
        if r.get("pool_pages") and r.get("pool_ns"):
            add(r, r["cpus_started"], r["pool_pages"], ("Ashlar", str(r.get("hvo"))), r["pool_ns"], r["ns_to_ready"])
    return found


def boot_pool_table(captures):
    rows = []
    for (memory, cpus, pages), sides in sorted(boot_pools(captures).items()):
        median = {side: Spread([one[0] for one in measured]).median for side, measured in sides.items()}
        for (kernel, hvo_state), measured in sorted(sides.items(), key=lambda i: (name_key(i[0][0]), i[0][1])):
            linux = kernel.startswith("Linux")
            same = median.get(("Ashlar", alike(kernel.split()[-1], hvo_state == "on"))) if linux else None
            mine = median.get(("Ashlar", "on")) if linux else None
            this = median[kernel, hvo_state]
            rows.append(
                [
                    kernel,
                    cpus,
                    f"{memory} GiB",
                    f"{pages:,}",
                    hvo_state,
                    len(measured),
                    words.spread(Spread([one[0] for one in measured])),
                    words.times(same and this / same),
                    words.times(mine and this / mine),
                    words.spread(Spread([one[1] for one in measured])),
                ]
            )
    head = [
        "kernel",
        "CPUs",
        "memory",
        "pages",
        "HVO",
        "boots",
        "the pool ms",
        "Linux : same technique",
        "Linux : ours",
        "ms to its first program, or ready",
    ]
    return Table(head, rows, "A pool of 2 MiB pages made at boot (`hugepages=`)") if rows else None


def faults(captures):
    """{(side, size): [ns a page, its pages]}: one task touches a region. Ashlar's sides: (clear_insn's leg, mode)."""
    found = {}
    for r in of_kind(captures, "linux", what="fault"):
        if r.get("done"):
            found.setdefault(((f"Linux {series_of(r)}",), r.get("size")), []).append((r["ns"] / r["done"], r["done"]))
    for r in of_kind([c for c in captures if c.name.startswith("peer-fault")], "fault", cpus=1):
        leg = "erms" if "fault-erms" in r.capture.name else "own"
        found.setdefault((("Ashlar", leg, r["mode"]), r["size"]), []).append((r["ns"] / r["faults"], r["faults"]))
    return found


BYTES = {"2M": 2 << 20, "1G": 1 << 30}


def fault_table(captures):
    found = faults(captures)
    spread = {key: Spread([one[0] for one in measured]) for key, measured in found.items()}
    rows = []
    for (side, size), measured in sorted(found.items(), key=lambda i: (str(i[0][1]) == "1G", ordered(i[0][0][0].split()[-1]))):
        if size not in BYTES or not side[0].startswith("Linux"):
            continue
        mode = "multi" if merged(side[0].split()[-1], S2_SINCE) else "page"
        this, same, mine = spread[side, size], spread.get((("Ashlar", "erms", mode), size)), spread.get((("Ashlar", "own", "multi"), size))
        rows.append(
            [
                side[0],
                size,
                measured[0][1],
                this.runs,
                words.spread(this, 1e-3),
                words.figure(BYTES[size] / this.median),
                f"{mode} {words.figure(same.median / 1e3)}" if same else "-",
                words.times(same and this.median / same.median),
                words.figure(mine and mine.median / 1e3),
                words.times(mine and this.median / mine.median),
            ]
        )
    head = [
        "kernel",
        "page",
        "pages",
        "runs",
        "us/fault",
        "GB/s",
        "Ashlar, same technique, rep stosb",
        "Linux : that",
        "Ashlar, ours",
        "Linux : ours",
    ]
    return Table(head, rows, "A region of huge pages is touched by one task (S2): microseconds a fault", left=2) if rows else None


def section(paper, captures):
    linux = pools(captures)
    if not of_kind(captures, "linux"):
        return
    wheres = {r.capture.where for r in of_kind(captures, "linux")}
    session = of_the_session(captures)
    here = ours(session, wheres)
    paper.add(Heading("Linux beside Ashlar"))
    paper.add(
        Text(
            "The distribution's kernels in the same QEMU on the same host, in turn with Ashlar: 6.1, before the batching of S0;"
            " 6.12, with it; and the newest of the backports, since 7.0 with S2 and with S4 done again. Each kernel has a row of"
            " its own. A ratio above 1 means that Linux takes longer."
        )
    )
    paper.add(
        Text(
            "Not comparable: Linux does more for each page. It charges and accounts it (hugetlb cgroups, vmstat, node"
            " counters), keeps reservations and surplus, takes locks that others share, goes through sysfs, and its"
            " interrupts and timers run meanwhile. Its time includes reading its clock (what=nothing in the records)."
            " Same technique is the same order of flushes, the same instruction for the same extent, the same search; not the"
            " same code. Growing 128 or 1,024 pages instead of 4,096 makes little difference to 6.1, as each page pays for"
            " itself. An emulated `rep stosb` is slow, which ours avoids where it can: that says nothing of real CPUs. "
            + words.EMULATED,
            "note",
        )
    )
    if linux:
        paper.add(pool_table(linux, here), pool_picture(linux, here, "alloc"), pool_picture(linux, here, "free"))
    paper.add(giga_table(session, wheres), boot_table(captures), boot_pool_table(captures), fault_table(captures))
