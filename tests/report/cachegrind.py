#!/usr/bin/env python3
"""The events that a fault on a huge page costs in a model, not on this machine: valgrind's cachegrind over the hosted machine.

    tests/report/cachegrind.py                run it after make host-native; it is part of make bench T=fault

bench=fault touches a region twice, once of a few pages and once of more. The difference, divided by the number of pages, is the cost of one
page, and start-up cancels out. There is one CPU, with caches of Milan's sizes. Each way differs from the way before it in one thing: the
pieces, or the instruction.

Cachegrind executes a rep instruction as a loop and counts an instruction and a branch for each store. This program takes these counts out
again, because by its own definition a rep instruction is one instruction. Non-temporal stores and CLZERO are left out, because they mean
nothing to a model that has no way past a cache.
"""

import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from callgrind import VALGRIND, Failed, main, passed

CACHES = "--tool=cachegrind --branch-sim=yes --I1=32768,8,64 --D1=32768,8,64 --LL=33554432,16,64"  # bytes, ways, bytes of a line
REP_BYTES = {"erms": 1, "rep": 8}  # bytes that one store of the instruction writes
SECONDS = 300


@dataclass(frozen=True)
class Way:
    pieces: str  # as fault_pieces= has them
    insn: str
    size: str = "2M"

    @property
    def mode(self):
        return "page" if self.pieces == "4K" else "multi"

    @property
    def extent(self):
        return {"4K": "4K", "extents": "32M", "whole": "whole"}[self.pieces]

    @property
    def bytes(self):
        return 2 << 20 if self.size == "2M" else 1 << 30

    @property
    def counts(self):
        """Numbers of pages of the two runs. An instruction that stores single bytes would need a minute for 1 GiB."""
        return (4, 12) if self.size == "2M" else (1, 2)


WAYS = (
    *(Way(pieces, insn) for insn in ("erms", "rep", "orig") for pieces in ("4K", "extents")),
    *(Way(pieces, "rep", "1G") for pieces in ("4K", "extents", "whole")),
)


def totals(text):
    events = re.search(r"^events: (.+)$", text, re.M)
    summary = re.search(r"^summary: (.+)$", text, re.M)
    if not events or not summary or len(events[1].split()) != len(summary[1].split()):
        raise Failed("cachegrind wrote no totals")
    return dict(zip(events[1].split(), map(int, summary[1].split())))


def events_of(way, few, many):
    """Events of the pages that only the second run has, under the names of the performance counters (clear.py)."""
    more = {name: many[name] - few[name] for name in many}
    stores = way.bytes * (way.counts[1] - way.counts[0]) // REP_BYTES[way.insn] if way.insn in REP_BYTES else 0
    return {
        "instructions": more["Ir"] - stores,
        "branches": more["Bc"] + more["Bi"] - stores,
        "branch_misses": more["Bcm"] + more["Bim"],
        "l1d_loads": more["Dr"] + more["Dw"],
        "l1d_misses": more["D1mr"] + more["D1mw"],
        "llc_loads": more["D1mr"] + more["D1mw"] + more["I1mr"],
        "llc_misses": more["DLmr"] + more["DLmw"] + more["ILmr"],
    }


def argv_of(way, pages, machine, out):
    cmdline = (
        f'bench="fault bytes={way.bytes * pages} size={way.size} pieces={way.pieces} insn={way.insn} runs=1 warm=off"'
    )
    memory = "512M" if way.size == "2M" else "5G"
    return [*f"{VALGRIND} {CACHES}".split(), f"--cachegrind-out-file={out}", machine, "-x", "-c", "1", "-m", memory, "-k", cmdline]


def run(way, pages, machine, folder):
    """Totals of one run that touched `pages` pages in this way."""
    out = Path(folder) / "out"
    text = passed(argv_of(way, pages, machine, out), SECONDS)
    did = rf"^BENCH fault mode={way.mode} insn={way.insn} size={way.size} .*\bpages={pages} .*\bfaults={pages} "
    if not re.search(did, text, re.M):
        raise Failed(f"the hosted machine did not touch {pages} pages of {way.size}, {way.mode}, {way.insn}: {text[-400:]}")
    return totals(out.read_text(encoding="ascii"))


def record_of(way, events):
    count = way.counts[1] - way.counts[0]
    words = " ".join(f"{name}={value}" for name, value in events.items())
    return f"BENCH cachegrind mode={way.mode} insn={way.insn} size={way.size} extent={way.extent} pages={count} run=1 {words}"


def measure(build):
    for way in WAYS:
        with tempfile.TemporaryDirectory() as folder:
            few, many = (run(way, pages, str(build / "host/native/ashlar-host"), folder) for pages in way.counts)
        print(record_of(way, events_of(way, few, many)), flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main("Count the events of a huge page fault with cachegrind.", measure))
