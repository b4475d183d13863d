"""Programs that run while a pool is resized: how often their CPUs are stopped, and how long they stand still (tests/bench/quiet_bench.c)."""

import peer
import pictures
import words
from gigablock import counted
from paper import Figure, Heading
from pictures import Series
from records import of_kind
from rows import item, last, median, rows_of, runs, table

COLOUR = {"off": "green", "unbatched": "red", "batched": "orange", "on": "blue"}
GAPS = {"gaps_1us": 1, "gaps_10us": 10, "gaps_100us": 100, "gaps_1ms": 1000}


def place(record):
    return words.place(record.capture.where, record["cpus"])


def system(record):
    return f"Linux {peer.series_of(record)}" if "kernel" in record.values else "Ashlar"


def mode(record):
    """Ashlar's, or the one that does what this Linux does."""
    return record.get("mode") or peer.alike(peer.series_of(record), record.get("optimise"))


def jitter(row):
    """The gaps of each mode, from all states of memory together, by length; a class without any has no point."""
    series = []
    for way in rows_of(row.records, timed=False, mode=mode, quiet=item("quiet")):
        points = [(us, count) for key, us in GAPS.items() if (count := sum(r[key] for r in way.records))]
        colour, is_quiet = COLOUR.get(way.key["mode"], "purple"), way.key["quiet"]
        series.append(Series(f"{way.key['mode']}, quiet {is_quiet}", points, colour, dashed=is_quiet == "off"))
    name = f"quiet-{row.last.capture.where}-{row.last['cpus']}-{row.key['system'].replace(' ', '-').lower()}"
    svg = pictures.lines(name, series, "us, from this to ten times as long", "gaps", 10)
    return Figure(name, svg, f"Gaps in the work of programs ({row.key['system']}, {row.key['machine']}).")


def section(paper, captures):
    records = of_kind(captures, "quiet") + of_kind(captures, "linux", what="quiet")
    if not records:
        return
    columns = {
        "stops, growing": median(item("stops_grow")),
        "stops, shrinking": median(item("stops_shrink")),
        "splits": last("splits"),
        "ticks": counted(item("loc", None)),
        "longest gap ms": median(item("longest_ns"), 1e-6),
        "runs": runs,
    }
    keys = {"system": system, "mode": mode, "memory": item("source"), "pages": item("pages"), "quiet": item("quiet")}
    paper.add(Heading("Quiet CPUs: no interrupts for struct pages"))
    paper.text(words.prose("quiet"))
    paper.add(table("Interrupts of programs", rows_of(records, machine=place, **keys), columns, ours=lambda row: row.key["quiet"] == "on", left=4))
    paper.add(*map(jitter, rows_of(records, timed=False, machine=place, system=system)))
