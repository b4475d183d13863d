"""Linux beside Ashlar: the measurements of `make bench WHAT=linux` as ratios. A ratio above 1 means that Linux takes longer.

Ashlar's side comes from the same session, in turn with Linux (consoles peer-*), if there are any such consoles. Otherwise it comes from the
measurements of `make bench` in the same emulator. Each kernel has a row. Beside the kernel stand Ashlar with the technique that this kernel
has, and Ashlar as it is by default.
"""

import re
from dataclasses import dataclass

import hvo
import pcp
import pictures
import words
from contig import overall
from paper import Figure, Heading, Table, Text
from pictures import Series
from records import Spread, mode_at_boot, of_kind


def series_of(record):
    """6.12 for 6.12.107+deb13-cloud-amd64."""
    return ".".join(re.split(r"[.+-]", record["kernel"])[:2])


def ordered(series):
    """A key that sorts 6.1 before 6.12."""
    return tuple(int(part) if part.isdigit() else 0 for part in series.split("."))


def merged(series, since):
    """Whether a series of kernels contains a change that was merged in another series."""
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
    """{(cpus, mode, op): Spread of us per page}, on fresh memory, in the emulator in which Linux ran."""
    found = {}
    for (where, cpus, size, source, busy), modes in hvo.largest(hvo.legs(captures)).items():
        if where in wheres and (size, source, busy) == ("2M", "fresh", 0):
            for (mode, op), records in modes.items():
                found[cpus, mode, op] = hvo.per_page(records)
    return found


# The series of kernels in which each technique was merged.
S0_SINCE, S2_SINCE, S3_SINCE, S4_STEP_SINCE = "6.7", "7.0", "6.10", "7.0"
BORN_OPTIMISED_SINCE = "6.15"  # pages of 1 GiB made at boot


def alike(series, optimise):
    """Ashlar's mode that does what this kernel does."""
    return "off" if not optimise else "batched" if merged(series, S0_SINCE) else "unbatched"


def alike_at_boot(series, size, optimise):
    """The same for a pool made at boot."""
    born = optimise and size == "1G" and merged(series, BORN_OPTIMISED_SINCE)
    return "preinit" if born else alike(series, optimise)


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
    return Table(head, rows, "A pool of 2 MiB pages (HVO series): microseconds a page")


def newest(captures):
    return max((series_of(r) for r in of_kind(captures, "linux")), key=ordered)


def pool_picture(linux, here, op, new):
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
    return Table(head, rows, "Pages of 1 GiB at run time (contiguous-range series): milliseconds a page") if rows else None


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
    """{(GiB, cpus, kernel): [(ms for all struct pages or None, ms to ready or to the first program)]}, for boots without pools."""
    found = {}
    for r in of_kind([c for c in captures if not c.name.startswith(READY)], "linux", what="ready"):
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


# Consoles of boots with and without a pool, which have a table of their own.
READY = "peer-ready-"

# memmap= of the rows shown: the technique of the series, ours at boot, ours.
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
    title = "Start (memmap series): all struct pages at boot; memory that QEMU's host gives for the first time, to both"
    return Table(head, rows, title) if any(row[0].startswith("Linux") for row in rows) else None


def boot_pools(captures):
    """{(GiB, cpus, pages): {(kernel, HVO): [(ms for the pool, ms to ready)]}}, for pools of 2 MiB pages made at boot."""
    found = {}

    def add(r, cpus, pages, side, pool_ns, ready_ns):
        found.setdefault((gib_of(r), cpus, pages), {}).setdefault(side, []).append((pool_ns / 1e6, ready_ns / 1e6))

    captures = [c for c in captures if not c.name.startswith(READY)]
    for r in of_kind(captures, "linux", what="boot_pool"):
        if r.get("done") == r.get("pages") and r.get("ready_ns"):
            add(r, r["cpus"], r["pages"], (f"Linux {series_of(r)}", "on" if r.get("optimise") else "off"), r["ns"], r["ready_ns"])
    for r in of_kind([c for c in captures if c.name.startswith("peer-")], "boot"):
        if r.get("pool_pages") and r.get("pool_ns"):
            add(r, r["cpus_started"], r["pool_pages"], ("Ashlar", mode_at_boot(r)), r["pool_ns"], r["ns_to_ready"])
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
    """{(side, size): [ns a page, its pages]}, where one task touches a region. Sides: (Linux, HVO); (Ashlar, its leg, mode)."""
    found = {}
    for r in of_kind(captures, "linux", what="fault"):
        if r.get("done"):
            side = (f"Linux {series_of(r)}", "on" if r.get("optimise") else "off")
            found.setdefault((side, r.get("size")), []).append((r["ns"] / r["done"], r["done"]))
    for r in of_kind([c for c in captures if c.name.startswith("peer-fault")], "fault", cpus=1):
        leg = "erms" if "fault-erms" in r.capture.name else "own"
        found.setdefault((("Ashlar", leg, r["mode"]), r["size"]), []).append((r["ns"] / r["faults"], r["faults"]))
    return found


BYTES = {"2M": 2 << 20, "1G": 1 << 30}


def fault_table(captures):
    found = faults(captures)
    spread = {key: Spread([one[0] for one in measured]) for key, measured in found.items()}
    rows = []
    order = sorted(found.items(), key=lambda i: (str(i[0][1]) == "1G", ordered(i[0][0][0].split()[-1]), i[0][0]))
    for (side, size), measured in order:
        if size not in BYTES or not side[0].startswith("Linux"):
            continue
        mode = "multi" if merged(side[0].split()[-1], S2_SINCE) else "page"
        this, same, mine = spread[side, size], spread.get((("Ashlar", "erms", mode), size)), spread.get((("Ashlar", "own", "multi"), size))
        rows.append(
            [
                side[0],
                side[1],
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
        "HVO",
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
    return Table(head, rows, "A region of huge pages is touched by one task (clearing series): microseconds a fault", left=3) if rows else None


# ---- ready, with and without a pool made at boot ----


@dataclass(frozen=True)
class Difference:
    """The difference of the medians of boots with and without something. The range is the range over the turns."""

    runs: int
    median: float
    low: float
    high: float

    @property
    def is_noise(self):
        return self.low <= 0


def difference(having, lacking):
    """The difference of {turn: ms} and {turn: ms} in the turns that have both; None if there is no such turn."""
    turns = having.keys() & lacking.keys()
    if not turns:
        return None
    each = [having[turn] - lacking[turn] for turn in turns]
    medians = [Spread([side[turn] for turn in turns]).median for side in (having, lacking)]
    return Difference(len(each), medians[0] - medians[1], min(each), max(each))


def turn_of(name):
    """2 for peer-ready-2-linux-full-on-2-6.12 and for peer-ready-2-full-on-2."""
    found = re.search(r"-(\d+)(-\d+\.\d+)?$", name)
    return int(found[1]) if found else 0


NO_POOL = ("none", 0)


@dataclass(frozen=True)
class Boot:
    """Milliseconds from the start of the kernel until it is ready and until its pools are made, and the time for making the pools."""

    ready: float
    made: float
    making: float  # or None: not known


def linux_boot(capture):
    """(GiB, CPUs, (size, pages), (kernel, HVO), Boot) of one boot, or None."""
    ready = [r for r in of_kind([capture], "linux", what="ready") if r.get("hugetlb_ns")]
    if not ready or ready[0].get("done") != ready[0].get("pages"):
        return None
    r = ready[0]
    made = [record["ns"] / 1e6 for record in of_kind([capture], "linux", what="boot_pool")]
    pool = (r.get("size"), r["pages"]) if r.get("pages") else NO_POOL
    side = f"Linux {series_of(r)}", "on" if r.get("optimise") else "off"
    return gib_of(r), r["cpus"], pool, side, Boot(r["ns"] / 1e6, r["hugetlb_ns"] / 1e6, made[0] if made else None)


def ashlar_boot(capture):
    """The same for a boot of Ashlar."""
    records = of_kind([capture], "boot")
    if not records:
        return None
    r = records[0]
    pool, ns = NO_POOL, None
    for size, prefix in (("1G", "pool_1g"), ("2M", "pool")):
        if r.get(f"{prefix}_pages"):
            pool, ns = (size, r[f"{prefix}_pages"]), r.get(f"{prefix}_ns")
    side = "Ashlar", mode_at_boot(r)
    ready = r["ns_to_ready"] / 1e6
    return gib_of(r), r["cpus_started"], pool, side, Boot(ready, ready, ns / 1e6 if ns else None)


def readies(captures):
    """{(GiB, CPUs): {(size, pages): {(kernel, HVO): {turn: Boot}}}}"""
    found = {}
    for capture in captures:
        one = (linux_boot(capture) or ashlar_boot(capture)) if capture.name.startswith(READY) else None
        if one:
            gib, cpus, pool, side, measured = one
            sides = found.setdefault((gib, cpus), {}).setdefault(pool, {})
            sides.setdefault(side, {})[turn_of(capture.name)] = measured
    return found


def ready_spread(measured):
    return words.spread(Spread([boot.ready for boot in measured.values()])) if measured else "-"


def lacking_pool(sides, kernel):
    """Boots of a kernel without a pool, in which HVO has nothing to do."""
    return next((measured for (name, _), measured in sides.items() if name == kernel), {})


def later(having, lacking, what):
    """How much later `what` happens with the pool than without it."""
    return difference(*({turn: getattr(boot, what) for turn, boot in side.items()} for side in (having, lacking)))


def longer(this, that):
    """The ratio of Linux's delay to Ashlar's; "noise" if a range reaches down to zero."""
    if this is None or that is None:
        return "-"
    return "noise" if this.is_noise or that.is_noise else words.times(this.median / that.median)


def ready_rows(memory, cpus, pool, sides, lacking):
    """A row for each kernel and state of HVO: how much later the kernel is ready because of this pool."""
    size, pages = pool
    cost = {side: later(measured, lacking_pool(lacking, side[0]), "made") for side, measured in sides.items()}
    rows = []
    for (kernel, state), measured in sorted(sides.items(), key=lambda i: (name_key(i[0][0]), i[0][1])):
        same = mine = None
        if kernel.startswith("Linux"):
            same = cost.get(("Ashlar", alike_at_boot(kernel.split()[-1], size, state == "on")))
            mine = cost.get(("Ashlar", "on"))
        without = lacking_pool(lacking, kernel)
        ready, made = later(measured, without, "ready"), cost[kernel, state]
        making = [boot.making for boot in measured.values() if boot.making is not None]
        rows.append(
            [
                kernel,
                state,
                f"{pages:,} x {size}",
                cpus,
                f"{memory} GiB",
                len(measured),
                ready_spread(measured),
                ready_spread(without),
                words.spread(ready) if ready else "-",
                words.spread(made) if made else "-",
                longer(made, same),
                longer(made, mine),
                words.spread(Spread(making)) if making else "-",
            ]
        )
    return rows


READY_HEAD = [
    "kernel",
    "HVO",
    "pool",
    "CPUs",
    "memory",
    "boots",
    "ready ms, with the pool",
    "without",
    "later by ms",
    "later by the end of hugetlb_init",
    "Linux : same technique",
    "Linux : ours",
    "hugetlb_init, or making the pool, ms",
]
READY_NOTE = (
    "Ready is Linux's first program and the end of Ashlar's start-up, both counted from the kernel's beginning: compare"
    " how much later each is ready for the pool, not the two columns before. That is the difference of the medians, with"
    " its range over the turns. All that a pool costs Linux is done by the end of hugetlb_init, before its drivers start;"
    " ratios are of that difference. hugetlb_init alone does not show it: pages of 1 GiB are taken long before, and in"
    " some kernels their struct pages are made then, too. Since 6.15 Linux with HVO does not make those that it would"
    " free (born optimised; Ashlar's `hvo=preinit`). The pool of 2 MiB pages is over 98% of what Linux counts as memory;"
    " with 98% of all RAM in the pool Linux 7.3 ran out of memory while it started. bare: the pool has the memory, and the"
    " struct pages of its pages are made when they are taken; Linux has nothing alike, so no ratio is to that row."
)


def ready_blocks(captures):
    rows = []
    for (memory, cpus), of_pool in sorted(readies(captures).items()):
        lacking = of_pool.get(NO_POOL, {})
        for pool, sides in sorted(of_pool.items(), key=str):
            rows += ready_rows(memory, cpus, pool, sides, lacking) if pool != NO_POOL else []
    if not any(row[0].startswith("Linux") for row in rows):
        return []
    return [Table(READY_HEAD, rows, "Ready with a pool made at boot and without", left=3), Text(READY_NOTE, "note")]


# ---- page_fault1 ----


def fault1_rates(captures):
    """{(side, tasks): Spread of pages a second}. Sides: (Linux,), or (Ashlar, clear_insn's leg, pcp_type_cache)."""
    found = {}
    for r in of_kind(captures, "linux", what="page_fault1"):
        if r.get("touched") and r.get("tasks"):
            found.setdefault(((f"Linux {series_of(r)}",), r["tasks"]), []).append(r["touched"] * 1e9 / r["ns"])
    for r in of_kind([c for c in captures if c.name.startswith("peer-page_fault1-")], "page_fault"):
        leg = "erms" if "fault1-erms" in r.capture.name else "own"
        found.setdefault((("Ashlar", leg, r["type_cache"]), r["cpus"]), []).append(r["touched"] * 1e9 / r["ns"])
    return {key: Spread(rates) for key, rates in found.items()}


def fault1_linux_row(series, tasks, rates):
    way = "each" if merged(series, S3_SINCE) else "on"
    this = rates[(f"Linux {series}",), tasks]
    same, mine = rates.get((("Ashlar", "erms", way), tasks)), rates.get((("Ashlar", "own", "off"), tasks))
    return [
        f"Linux {series}",
        tasks,
        this.runs,
        words.spread(this),
        f"{way} {words.figure(same.median)}" if same else "-",
        words.times(same and same.median / this.median),
        words.figure(mine and mine.median),
        words.times(mine and mine.median / this.median),
    ]


FAULT1_HEAD = [
    "kernel",
    "tasks",
    "runs",
    "pages a second",
    "Ashlar, same technique, rep stosb",
    "Linux : that",
    "Ashlar, ours",
    "Linux : ours",
]
FAULT1_NOTE = (
    "The same: each task has a CPU, maps 128 MiB, writes to each 4 KiB page and unmaps them, and both clear each page as it"
    " is faulted in. Huge pages are switched off in Linux. Not the same: a task of Linux is a process with page tables of"
    " its own, and enters the kernel from ring 3 for each page. Linux charges each page, has it in its reverse map and on"
    " its LRU list, and counts it for the process. A task of Ashlar is a CPU in the kernel; all mappings are in one address"
    " space, so that unmapping tells the other CPUs. Types: 6.10 and later look them up, as `each` does; earlier ones cache"
    " them, as `on` does. HVO has no part in it. Ratios are of times: above 1, Linux takes longer."
)


def fault1_blocks(captures):
    rates = fault1_rates(captures)
    rows = [
        fault1_linux_row(side[0].split()[-1], tasks, rates)
        for side, tasks in sorted(rates, key=lambda i: (i[1], ordered(i[0][0].split()[-1])))
        if side[0].startswith("Linux")
    ]
    if not rows:
        return []
    for tasks in sorted({tasks for _, tasks in rates}):
        for way, name in pcp.WAYS.items():
            measured = rates.get((("Ashlar", "own", way), tasks))
            if measured:
                rows.append([f"Ashlar, {name}", tasks, measured.runs, words.spread(measured), "-", "-", "-", "-"])
    return [Table(FAULT1_HEAD, rows, "page_fault1 (per-CPU list series): pages a second"), Text(FAULT1_NOTE, "note")]


def section(paper, captures):
    captures = [c for c in captures if not c.name.startswith("programs-")]  # programs.py
    linux = pools(captures)
    if not of_kind(captures, "linux"):
        return
    wheres = {r.capture.where for r in of_kind(captures, "linux")}
    session = of_the_session(captures)
    here, new = ours(session, wheres), newest(captures)
    paper.add(Heading("Linux beside Ashlar"))
    paper.add(
        Text(
            "The distribution's kernels in the same QEMU on the same host, in turn with Ashlar: 6.1, from before the batching of"
            " the HVO series; 6.12, with the batching; and the newest of the backports, since 7.0 with the clearing series and with"
            " the contiguous-range series done again. Each kernel has a row of"
            f" its own, with HVO off and on where huge pages are made. The newest is {new}: its rows are those to quote."
            " A ratio above 1 means that Linux takes longer."
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
        paper.add(pool_table(linux, here), *(pool_picture(linux, here, op, new) for op in ("alloc", "free")))
    paper.add(giga_table(session, wheres), boot_table(captures), boot_pool_table(captures))
    paper.add(*ready_blocks(captures), fault_table(captures), *fault1_blocks(captures))
