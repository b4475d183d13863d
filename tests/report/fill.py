"""Pools over much of the memory: their cost at boot, and the number of CPUs that fills one fastest.

The boots are those of the legs pools-*. Each row is booted as often, in turn, and a boot with a pool stands beside the same boot without
one.
"""

import words
from paper import Heading, Table, Text
from records import Spread, mode_at_boot, of_kind

GIGA = 1 << 30


def booted(captures):
    """{(where, cpus, ram, memmap): {(hvo, pages of 2 MiB, of 1 GiB): records}}, from consoles with many boots in turn."""
    found = {}
    for r in of_kind([c for c in captures if c.boots > 1 and c.name.startswith("pools")], "boot"):
        machine = (r.capture.where, r["cpus_started"], r["ram_bytes"], r.get("memmap"))
        small, large = r.get("pool_pages", 0), r.get("pool_1g_pages", 0)
        found.setdefault(machine, {}).setdefault((mode_at_boot(r) if small or large else "-", small, large), []).append(r)
    return found


def ready(records):
    return Spread([r["ns_to_ready"] / 1e6 for r in records])


def boot_table(captures):
    rows, ours = [], []
    for (where, cpus, ram, memmap), sides in sorted(booted(captures).items(), key=str):
        without = sides.get(("-", 0, 0))
        for (mode, small, large), records in sorted(sides.items(), key=str):
            if mode.startswith("on"):
                ours.append(len(rows))
            pool = Spread([(r.get("pool_ns", 0) + r.get("pool_1g_ns", 0)) / 1e6 for r in records])
            beside = words.ratio(ready(records).median, ready(without).median) if without and mode != "-" else None
            rows.append(
                [
                    words.WHERE.get(where, where),
                    cpus,
                    words.size(-(-ram // GIGA) * GIGA),
                    f"memmap={memmap}",
                    mode if mode == "-" else f"hvo={mode}",
                    f"{small:,} of 2 MiB" if small else f"{large:,} of 1 GiB" if large else "none",
                    len(records),
                    words.spread(pool) if mode != "-" else "-",
                    words.spread(ready(records)),
                    words.times(beside),
                ]
            )
    head = ["machine", "CPUs", "memory", "struct pages", "mode", "pool", "boots", "the pool ms", "ready ms", ": without"]
    return Table(head, rows, "Pools made at boot (`hugepages=`)", left=1, ours=tuple(ours)) if rows else None


def sweep_table(captures):
    found = {}
    for r in of_kind(captures, "fill"):
        found.setdefault((r.capture.where, r["cpus"], r["mode"], r["size"], r["pages"]), {}).setdefault(r["threads"], []).append(r)
    rows, best = [], []
    for (where, cpus, mode, size, pages), by_threads in sorted(found.items(), key=str):
        ms = {threads: Spread([r["ns"] / 1e6 for r in records]) for threads, records in sorted(by_threads.items())}
        fastest = min(ms, key=lambda threads: ms[threads].median)
        for threads, spread in ms.items():
            if threads == fastest:
                best.append(len(rows))
            rows.append(
                [words.WHERE.get(where, where), cpus, f"hvo={mode}", size, f"{pages:,}", threads, spread.runs, words.spread(spread)]
                + [words.figure(spread.median * 1000 / pages), words.times(words.ratio(spread.median, ms[1].median if 1 in ms else None))]
            )
    head = ["machine", "CPUs", "mode", "size", "pages", "hvo_threads", "runs", "ms", "us/page", ": one thread"]
    return Table(head, rows, "A pool over nearly all memory, from sections that nobody has opened", left=1, ours=tuple(best)) if rows else None


def section(paper, captures):
    tables = [table for table in (boot_table(captures), sweep_table(captures)) if table]
    if not tables:
        return
    paper.add(Heading("Pools over much of the memory"))
    paper.add(
        Text(
            "preinit: pages of 1 GiB that are made at boot are born optimised, before all other struct pages are made (Linux"
            " since 6.15; van der Linden, 2025-02). bare: the pages belong to the pool and their memory is kept for it, but their"
            " struct pages are made when they are taken, which the second table times. The second table marks the fastest number of CPUs. " + words.EMULATED
        )
    )
    paper.add(*tables)
