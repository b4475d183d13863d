"""The memmap series: making all struct pages with 0 to all CPUs of a node.

A row of ours is put together from two kinds of runs. bench=memmap makes the struct pages again and again in one boot, in memory that is
already there. It gives `memmap init` and the warm figure. Machines that are booted many times (the legs memmap-boots) give `kernel boot`
and, because each of them meets its memory for the first time, the figure at first touch. A speedup is printed only if it is beyond the
noise (words.saved).
"""

import seeds
import words
from paper import Heading, Table, Text
from records import Spread, of_kind
from rows import item, last, machine, median, rows_of, table

INIT = 6  # index in a published row: ms of deferred init
WAYS = ("serial", "parallel", "eager")
MEANS = {
    "serial": "before",
    "parallel": "after",
    "eager": "ours, all at boot",
    "lazy": "ours",
}


def asked_of(mode, asked):
    """Threads or share asked for, if the way has any."""
    return str(asked) if mode in ("parallel", "eager") else "0" if mode == "serial" else ""


def machine_of(record):
    facts = record.capture.facts
    return record.capture.where, facts.get("cpus", "?"), facts.get("ram_bytes", 0)


def tables(captures):
    """{(where, cpus, ram): {(mode, asked): record}}, the last run of each machine."""
    found = {}
    for record in of_kind(captures, "memmap"):
        rows = found.setdefault(machine_of(record), {})
        rows[record["mode"], asked_of(record["mode"], record.get("asked", ""))] = record
    return {key: rows for key, rows in found.items() if ("serial", "0") in rows and any(mode == "parallel" for mode, _ in rows)}


def boots(captures):
    """{(where, cpus, ram): {(mode, asked): records of the boots}}, only from consoles with many boots in turn."""
    found = {}
    for record in of_kind([c for c in captures if c.boots > 1], "boot"):
        if record.get("pool_pages") or record.get("pool_1g_pages") or record.capture.name.startswith("pools"):
            continue  # these belong to fill.py
        if record.get("memmap") in MEANS:
            key = (record["memmap"], asked_of(record["memmap"], record.get("memmap_asked", "")))
            found.setdefault(machine_of(record), {}).setdefault(key, []).append(record)
    return found


def serial_of(rows):
    return rows["serial", "0"]


def best_of(rows, mode):
    return min((r for (m, _), r in rows.items() if m == mode), key=lambda r: r["ns"], default=None)


def first_touch(record, booted):
    """ns per struct page in memory that nobody touched before: a Spread over boots, or the one time in the bench."""
    of_boots = [b["memmap_ns"] / b["memmap_pages"] for b in booted if b.get("memmap_pages") and b.get("memmap_ns")]
    if of_boots:
        return Spread(of_boots)
    return Spread([record["ns_first"] / record["pages"]]) if record and record["ns_first"] else None


def published(percent, threads):
    """(kernel boot, memmap init) saved in the published rows with this share or number of threads: lowest to highest of the machines."""
    found = ([], [])
    for _, _, _, table in seeds.MEMMAP:
        for row in table[1:]:
            if row[0] == percent or (threads == 1 and row[1] == 1):
                found[0].append(row[2])
                found[1].append(row[5])
    return [f"{min(values):.1f} to {max(values):.1f} %" if values else "-" for values in found]


def our_rows(rows, booted):
    """The table of one machine, with its rows in the published order."""
    keys = [key for mode in (*WAYS, "lazy") for key in {**rows, **booted} if key[0] == mode]
    base = serial_of(rows)
    base_boot = Spread([b["ns_to_ready"] for b in booted[("serial", "0")]]) if ("serial", "0") in booted else None
    for mode, asked in keys:
        record, boot_records = rows.get((mode, asked)), booted.get((mode, asked), [])
        boot = Spread([b["ns_to_ready"] / 1e6 for b in boot_records]) if boot_records else None
        touch = first_touch(record, boot_records)
        percent = int(asked[:-1]) if asked.endswith("%") else -1
        threads = record["threads"] if record else boot_records[0].get("memmap_threads", "-")
        is_base = mode == "serial"
        theirs = published(percent, threads if mode == "parallel" else 0) if mode == "parallel" else ["-", "-"]
        saved_boot = words.saved(base_boot.median / 1e6, base_boot.sd / 1e6, boot.median, boot.sd) if base_boot and boot else "-"
        saved_init = words.saved(base["ns"], base["ns_sd"], record["ns"], record["ns_sd"]) if record else "-"
        yield [
            f"{mode}: {MEANS[mode]}",
            asked if percent >= 0 else "",
            threads if mode != "serial" else 0,
            "--" if is_base else saved_boot,
            words.with_sd(boot and boot.median, boot.sd if boot else 0),
            theirs[0],
            "--" if is_base else saved_init,
            words.with_sd(record and record["ns"] / 1e6, record["ns_sd"] / 1e6 if record else 0) if record else "nothing made",
            theirs[1],
            words.figure(record and record["ns"] / record["pages"]),
            words.with_sd(touch.median, touch.sd) if touch and touch.runs > 1 else words.figure(touch and touch.median),
            f"{len(boot_records)} / {record['runs'] if record else 0}",
        ]


HEAD = [
    "node%",
    "threads",
    "kernel boot: speedup",
    "ms (sd)",
    "published",
    "memmap init: speedup",
    "ms (sd)",
    "published",
    "ns per struct page: warm",
    "first touch",
    "boots / runs",
]


def ours(found, booted):
    for key, rows in found.items():
        where, cpus, ram = key
        body = list(our_rows(rows, booted.get(key, {})))
        mark = tuple(i for i, row in enumerate(body) if row[0].startswith(("eager", "lazy")))
        title = f"{words.place(where, cpus)}, {words.size(ram) if ram else '?'}: the slowest node decides; medians, deviations of a sample"
        yield Table(["way", *HEAD], body, title, left=1, ours=mark)


def published_full():
    """The published tables, with their own columns."""
    rows = []
    for machine, nodes, gib, table in seeds.MEMMAP:
        for i, (percent, threads, boot_saved, boot, boot_sd, init_saved, init, init_sd) in enumerate(table):
            rows.append(
                [
                    machine if i == 0 else "",
                    f"{nodes} x {gib} GiB" if i == 0 else "",
                    f"{percent}%" if i else "",
                    threads,
                    f"{boot_saved:.1f} %" if i else "--",
                    f"{boot:.1f} ({boot_sd:.1f})",
                    f"{init_saved:.1f} %" if i else "--",
                    f"{init:.1f} ({init_sd:.1f})",
                ]
            )
    head = ["published on", "memory", "node%", "threads", "kernel boot: speedup", "ms (sd)", "deferred init: speedup", "ms (sd)"]
    return Table(head, rows, "Published: all rows", left=2, folded=True)


LAZY = {
    "open": ("opening all sections: no struct page is written", "ns per page opened"),
    "all": ("then making all struct pages after all", "ns per struct page"),
}


def place(record):
    where, cpus, _ = machine_of(record)
    return words.place(where, cpus)


def lazy(captures):
    """The work that lazy puts off. Opening is not making, so each has a row and a unit of its own."""
    columns = {
        "memory": lambda row: words.size(row.last["pages"] * 4096),
        "ms (sd)": lambda row: words.with_sd(row.last["ns"] / 1e6, row.last["ns_sd"] / 1e6),
        "unit": lambda row: LAZY[row.last["what"]][1],
        "warm": lambda row: words.figure(row.last["ns"] / row.last["pages"]),
        "first touch": lambda row: words.figure(row.last["ns_first"] / row.last["pages"]) if row.last["ns_first"] else "-",
        "runs": last("runs"),
    }
    records = [r for r in of_kind(captures, "memmap_lazy") if r["what"] in LAZY]
    rows = rows_of(records, machine=place, **{"one CPU": lambda r: LAZY[r["what"]][0]})
    return table("Ours, lazy: nothing is made at boot; what it costs later", rows, columns, left=2)


def bound(captures):
    """A plain clear of as much memory, in turn with making struct pages."""
    columns = {
        "memory": lambda row: words.size(row.last["bytes"]),
        "clear GB/s": median(lambda r: r["bytes"] / r["ns"]),
        "struct pages GB/s": median(lambda r: r["memmap_pages"] * 64 / r["memmap_ns"]),
    }
    rows = rows_of([r for r in of_kind(captures, "probe", name="clear") if r.get("bytes")], machine=machine, threads=item("threads"))
    return table("The bound: a plain clear of as much memory, in turn with making struct pages", rows, columns)


def limit(captures):
    """How often many threads reach what the machine allowed in the same run."""
    columns = {
        "threads : one": median(item("gain")),
        "limit : one": median(item("limit")),
        "good runs": lambda row: f"{sum(1 for r in row.records if r['good'])} of {len(row.records)}",
    }
    title = "Threads beside the limit: a run is good at 0.9 times for each thread, or within 5% of what a clear gains in it"
    return table(title, rows_of(of_kind(captures, "memmap_limit"), machine=machine, threads=item("threads")), columns)


def headline(captures):
    found = tables(captures)
    best = max(found.items(), key=lambda item: (item[0][0] != "tcg", serial_of(item[1])["pages"]), default=None)
    if not best:
        return None
    (where, cpus, _), rows = best
    mine = best_of(rows, "eager")
    table = seeds.MEMMAP[0][3]
    scale = 1e6 / (seeds.MEMMAP[0][2] * 2**30 / 4096)
    after = best_of(rows, "parallel")
    return [
        "Memmap series, make all struct pages: ns per page",
        words.figure(table[0][INIT] * scale),
        words.figure(table[-1][INIT] * scale),
        words.figure(serial_of(rows)["ns"] / serial_of(rows)["pages"]),
        words.figure(after["ns"] / after["pages"]),
        words.figure(mine and mine["ns"] / mine["pages"]),
        words.place(where, cpus),
    ]


def section(paper, captures):
    found = tables(captures)
    if not found:
        return
    paper.add(Heading("Memmap series: all struct pages are made at boot"))
    paper.add(
        Text(
            'Jordan, "mm: parallelize deferred_init_memmap()", 2020-05: the CPUs of each node make its struct pages'
            " together. Ours, `lazy`, makes them when a block is first split, and boot does not depend on how much RAM"
            " there is; where all are wanted at boot, `eager` makes them."
        )
    )
    paper.add(*ours(found, boots(captures)), lazy(captures))
    paper.add(
        Text(
            "Row 0 is the path before the series: no job, no chunks. Its work and that of the rows below it is the same,"
            " struct page by struct page, freed in pieces of 4 MiB as Linux does. Published speedups are the range of the"
            " six published machines for the same share of the CPUs. Where runs scatter more than they differ the cell says"
            " noise. First touch is of memory that the host had not backed.",
        )
    )
    paper.add(
        Text(
            "Not comparable: Linux initialises fields and links free lists for each page, Ashlar writes 64 bytes;"
            " published machines have hundreds of GiB and a core for each thread, where a host with two cores cannot"
            " gain more than twice, and one that shares its memory bus with others less. Hosted, a struct page that is made"
            " later takes a system call for each frame, which no kernel does. " + words.EMULATED,
            "note",
        )
    )
    paper.add(published_full(), bound(captures), limit(captures))
