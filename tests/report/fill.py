"""Pools over much of the memory: their cost at boot.

The boots are those of the legs pools-*. Each row is booted as often, in turn, and a boot with a pool stands beside the same boot without
one.
"""

import words
from paper import Heading
from records import mode_at_boot, of_kind
from rows import item, machine, median, memory, rows_of, runs, table


def pool_of(boot):
    small, large = boot.get("pool_pages", 0), boot.get("pool_1g_pages", 0)
    return f"{small:,} of 2 MiB" if small else f"{large:,} of 1 GiB" if large else "none"


def memmap_of(boot):
    return f"memmap={boot.get('memmap')}"


def mode_of(boot):
    return "-" if pool_of(boot) == "none" else f"hvo={mode_at_boot(boot)}"


def pool_ms(boot):
    return (boot.get("pool_ns", 0) + boot.get("pool_1g_ns", 0)) / 1e6


def ready_ms(boot):
    return boot["ns_to_ready"] / 1e6


def later(row):
    return "-" if row.key["mode"] == "-" else words.spread(row.ratio(ready_ms, mode="-", pool="none"), unit="x")


def boot_table(captures):
    boots = of_kind([c for c in captures if c.boots > 1 and c.name.startswith("pools")], "boot")
    keys = {"CPUs": item("cpus_started"), "memory": memory, "struct pages": memmap_of, "mode": mode_of, "pool": pool_of}
    columns = {
        "boots": runs,
        "the pool ms": lambda row: "-" if row.key["mode"] == "-" else median(pool_ms)(row),
        "ready ms": median(ready_ms),
        "ready : without pool": later,
    }
    rows = rows_of(boots, machine=machine, **keys)
    return table("Pools made at boot (`hugepages=`)", rows, columns, ours=lambda row: row.key["mode"].startswith("hvo=on"))


def section(paper, captures):
    boots = boot_table(captures)
    if not boots:
        return
    paper.add(Heading("Pools over much of the memory"))
    paper.text(words.prose("fill"))
    paper.add(boots)
