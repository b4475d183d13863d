"""Linux beside Ashlar: the measurements of `make bench WHAT=linux` as ratios. A ratio above 1 means that Linux takes longer.

Ashlar's side comes from the same session, in turn with Linux (consoles peer-*), if there are any such consoles. Otherwise it comes from the
measurements of `make bench` in the same emulator. Each kernel has a row. Beside the kernel stand Ashlar with the technique that this kernel
has, and Ashlar as it is by default.
"""

import re

import contig
import hvo
import words
from paper import Heading, Table, Text
from records import Spread, mode_at_boot, of_kind
from rows import memory


def series_of(record):
    """6.12 for 6.12.107+deb13-cloud-amd64."""
    return ".".join(re.split(r"[.+-]", record["kernel"])[:2])


def ordered(series):
    """A key that sorts 6.1 before 6.12."""
    return tuple(int(part) if part.isdigit() else 0 for part in series.split("."))


def merged(series, since):
    """Whether a series of kernels contains a change that was merged in another series."""
    return ordered(series) >= ordered(since)


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


def name_key(kernel):
    return (kernel.startswith("Ashlar"), ordered(kernel.split()[-1]), kernel)


# ---- rows of Linux beside rows of Ashlar ----


def kernel_of(record):
    """A side of Linux where huge pages are made: its series, and whether HVO is on."""
    return series_of(record), bool(record.get("optimise"))


def spreads(measured):
    """{key: the Spread of its values} of pairs (key, value)."""
    found = {}
    for key, value in measured:
        found.setdefault(key, []).append(value)
    return {key: Spread(values) for key, values in found.items()}


def beside(caption, heads, linux, ashlar, alike_of, ours):
    """
    A row for each kernel, with Ashlar's mode alike_of(series, HVO) and then with its mode `ours` beside it. What was measured is pairs of a
    key and a time; a key is what both sides have in common, which `heads` names, and the kernel, or Ashlar's mode.
    """
    mine, rows = spreads(ashlar), []
    ordered_rows = sorted(spreads(linux).items(), key=lambda row: (*map(str, row[0][0]), ordered(row[0][1][0]), row[0][1][1:]))
    for (common, kernel), this in ordered_rows:
        mode = alike_of(*kernel)
        same, own = (mine[common, name].median if (common, name) in mine else None for name in (mode, ours))
        label = mode[-1] if isinstance(mode, tuple) else mode
        rows.append([
            f"Linux {kernel[0]}", *("on" if on else "off" for on in kernel[1:]), *common, this.runs, words.spread(this),
            f"{label} {words.figure(same)}" if same else "-", words.times(words.ratio(this.median, same)),
            words.figure(own), words.times(words.ratio(this.median, own)),
        ])  # fmt: skip
    if not rows:
        return None
    kernel_heads = ["kernel", "HVO"][: len(rows[0]) - len(heads) - 6]
    head = [*kernel_heads, *heads, "runs", "Linux", "Ashlar, same technique", "Linux : that", "Ashlar, ours", "Linux : ours"]
    return Table(head, rows, caption)


def in_turn(captures, name=""):
    return [c for c in captures if c.name.startswith(f"peer-{name}")]


def pool_table(captures, session, wheres):
    """Ashlar's side is on fresh memory, in the emulator in which Linux ran."""
    linux = [
        (((r["cpus"], r["op"]), kernel_of(r)), r["ns"] / r["done"] / 1000) for r in of_kind(captures, "linux", what="hvo")
        if r.get("done") and r.get("op") in ("alloc", "free") and r.get("optimise") in (0, 1)
    ]
    records = (r for r in of_kind(session, "hvo", size="2M", source="fresh") if r["done"] and r.capture.where in wheres)
    ashlar = ((((r["cpus"], r["op"]), r["mode"]), hvo.per_page(r)) for r in records)
    caption = "A pool of 2 MiB pages grows (alloc) and shrinks (HVO series): microseconds a page"
    return beside(caption, ["CPUs", "op"], linux, ashlar, alike, "on")


def giga_table(captures, session, wheres):
    linux = ((((), kernel_of(r)), r["ns"] / r["done"] / 1e6) for r in of_kind(captures, "linux", what="giga", op="alloc") if r.get("done"))
    steps = {}
    for r in of_kind(session, "contig", memory="fresh"):
        if r.capture.where in wheres:
            steps.setdefault(r["mode"], []).append(r)
    ashlar = ((((), mode), contig.overall(records)[2]) for mode, records in steps.items())
    caption = "Pages of 1 GiB at run time, in steps of ten (contiguous-range series): milliseconds a page"
    return beside(caption, [], linux, ashlar, lambda series, on: "step" if merged(series, S4_STEP_SINCE) else "skip", "index")


def leg_of(record):
    """Ashlar's instruction that clears: Linux's own, `rep stosb`, or the one that Ashlar chooses."""
    return "erms" if "-erms-" in record.capture.name else "own"


def fault_table(captures):
    """Linux clears with `rep stosb` here, and so does the Ashlar that stands beside it first."""
    records = (r for r in of_kind(captures, "linux", what="fault") if r.get("done"))
    linux = ((((r.get("size"), r["done"]), kernel_of(r)), r["ns"] / r["done"] / 1000) for r in records)
    records = of_kind(in_turn(captures, "fault"), "fault", cpus=1)
    ashlar = ((((r["size"], r["faults"]), (leg_of(r), r["mode"])), r["ns"] / r["faults"] / 1000) for r in records)
    caption = "A region of huge pages is touched by one task (clearing series): microseconds a fault"
    alike_of = lambda series, on: ("erms", "multi" if merged(series, S2_SINCE) else "page")  # noqa: E731
    return beside(caption, ["page", "pages"], linux, ashlar, alike_of, ("own", "multi"))


def memmap_table(captures):
    """All struct pages at boot. Boots with and without a pool have a table of their own (READY)."""
    boots = (r for r in of_kind(captures, "linux", what="ready") if not r.get("pages") and not r.capture.name.startswith(READY))
    linux = (
        (((r["cpus"], memory(r)), (series_of(r),)), made["ns"] / 1e6)
        for r in boots for made in of_kind([r.capture], "linux", what="memmap")
    )
    boots = (r for r in of_kind(in_turn(captures), "boot") if r.get("memmap_ns") and not r.get("pool_pages"))
    ashlar = ((((r["cpus_started"], memory(r)), r.get("memmap")), r["memmap_ns"] / 1e6) for r in boots)
    caption = "All struct pages at boot (memmap series): milliseconds; QEMU's host gives the memory for the first time, to both"
    return beside(caption, ["CPUs", "memory"], linux, ashlar, lambda series: "parallel", "eager")


def boot_pool_table(captures):
    captures = [c for c in captures if not c.name.startswith(READY)]
    pools = (r for r in of_kind(captures, "linux", what="boot_pool") if r.get("done") == r.get("pages") and r.get("ready_ns"))
    linux = ((((memory(r), r["cpus"], r["pages"]), kernel_of(r)), r["ns"] / 1e6) for r in pools)
    pools = (r for r in of_kind(in_turn(captures), "boot") if r.get("pool_pages") and r.get("pool_ns"))
    ashlar = ((((memory(r), r["cpus_started"], r["pool_pages"]), mode_at_boot(r)), r["pool_ns"] / 1e6) for r in pools)
    caption = "A pool of 2 MiB pages made at boot (`hugepages=`): milliseconds"
    return beside(caption, ["memory", "CPUs", "pages"], linux, ashlar, alike, "on")


# ---- ready, with and without a pool made at boot ----

READY = "peer-ready-"  # consoles of these boots


def later(having, lacking, what):
    """The Spread of how much later `what` happens in {turn: ms of each}, in the turns that both have; None without such a turn."""
    each = [having[turn][what] - lacking[turn][what] for turn in having.keys() & lacking.keys()]
    return Spread(each) if each else None


def turn_of(name):
    """2 for peer-ready-2-linux-full-on-2-6.12 and for peer-ready-2-full-on-2."""
    found = re.search(r"-(\d+)(-\d+\.\d+)?$", name)
    return int(found[1]) if found else 0


NO_POOL = ("none", 0)


def boot_of(capture):
    """(machine, pool, side), and ms from the start of the kernel until it is ready and until its pools are made. None if they were not."""
    for r in of_kind([capture], "linux", what="ready"):
        if r.get("hugetlb_ns") and r.get("done") == r.get("pages"):
            pool = (r.get("size"), r["pages"]) if r.get("pages") else NO_POOL
            side = f"Linux {series_of(r)}", "on" if r.get("optimise") else "off"
            return ((memory(r), r["cpus"]), pool, side), {"ready": r["ns"] / 1e6, "made": r["hugetlb_ns"] / 1e6}
    for r in of_kind([capture], "boot"):
        pools = [(size, r[key]) for size, key in (("1G", "pool_1g_pages"), ("2M", "pool_pages")) if r.get(key)]
        key = (memory(r), r["cpus_started"]), (pools or [NO_POOL])[-1], ("Ashlar", mode_at_boot(r))
        return key, dict.fromkeys(("ready", "made"), r["ns_to_ready"] / 1e6)
    return None


def readies(captures):
    """{((memory, CPUs), (size, pages), (kernel, HVO)): {turn: ms}}"""
    found = {}
    for capture in captures:
        if capture.name.startswith(READY) and (boot := boot_of(capture)):
            found.setdefault(boot[0], {})[turn_of(capture.name)] = boot[1]
    return found


def longer(this, that):
    """The ratio of Linux's delay to Ashlar's; "noise" if a range reaches down to zero."""
    if this is None or that is None:
        return "-"
    return "noise" if min(this.low, that.low) <= 0 else words.times(this.median / that.median)


def ready_rows(found):
    """A row for each machine, pool, kernel and state of HVO: how much later the kernel is ready because of this pool. Without a pool HVO
    has nothing to do."""
    lacking = {(machine, side[0]): measured for (machine, pool, side), measured in found.items() if pool == NO_POOL}
    cost = {key: later(measured, lacking.get((key[0], key[2][0]), {}), "made") for key, measured in found.items()}
    having = [item for item in found.items() if item[0][1] != NO_POOL]
    for key, measured in sorted(having, key=lambda i: (i[0][0], str(i[0][1]), name_key(i[0][2][0]), i[0][2][1])):
        machine, pool, (kernel, state) = key
        same = mine = None
        if kernel.startswith("Linux"):
            same = cost.get((machine, pool, ("Ashlar", alike_at_boot(kernel.split()[-1], pool[0], state == "on"))))
            mine = cost.get((machine, pool, ("Ashlar", "on")))
        ready, made = later(measured, lacking.get((machine, kernel), {}), "ready"), cost[key]
        delays = [words.spread(delay) if delay else "-" for delay in (ready, made)]
        where = [f"{pool[1]:,} x {pool[0]}", machine[1], machine[0]]
        yield [kernel, state, *where, len(measured), *delays, longer(made, same), longer(made, mine)]


READY_HEAD = [
    *("kernel", "HVO", "pool", "CPUs", "memory", "boots"),
    *("ready later by ms", "by the end of hugetlb_init", "Linux : same technique", "Linux : ours"),
]


def ready_blocks(captures):
    rows = list(ready_rows(readies(captures)))
    if not any(row[0].startswith("Linux") for row in rows):
        return []
    return [Table(READY_HEAD, rows, "Ready with a pool made at boot and without", left=3), Text(words.prose("peer.ready"), "note")]


# ---- page_fault1 ----


def fault1_table(captures):
    """Sides of Ashlar: its instruction that clears, and what it does with types (pcp.type_cache) where it does what this kernel does."""
    records = (r for r in of_kind(captures, "linux", what="page_fault1") if r.get("touched") and r.get("tasks"))
    linux = ((((r["tasks"],), (series_of(r),)), r["ns"] / r["touched"]) for r in records)
    records = of_kind(in_turn(captures, "page_fault1-"), "page_fault")
    ashlar = ((((r["cpus"],), (leg_of(r), r["type_cache"])), r["ns"] / r["touched"]) for r in records)
    caption = "page_fault1 (per-CPU list series): nanoseconds a page"
    return beside(caption, ["tasks"], linux, ashlar, lambda series: ("erms", "each" if merged(series, S3_SINCE) else "on"), ("own", "off"))


def section(paper, captures):
    captures = [c for c in captures if not c.name.startswith("programs-")]  # programs.py
    if not of_kind(captures, "linux"):
        return
    wheres = {r.capture.where for r in of_kind(captures, "linux")}
    session = in_turn(captures) or captures
    new = max((series_of(r) for r in of_kind(captures, "linux")), key=ordered)
    paper.add(Heading("Linux beside Ashlar"))
    paper.text(words.prose("peer", newest=new))
    paper.note(words.prose("peer.not-comparable"))
    paper.add(pool_table(captures, session, wheres), giga_table(captures, session, wheres), memmap_table(captures))
    paper.add(boot_pool_table(captures), *ready_blocks(captures), fault_table(captures))
    rates = fault1_table(captures)
    if rates:
        paper.add(rates, Text(words.prose("peer.page_fault1"), "note"))
