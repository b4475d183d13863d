"""What can still be had after days of work: pages of 1 GiB and 2 MiB, in each mode and on Linux."""

import pictures
import words
from paper import Figure, Heading, Table, Text
from pictures import Series
from records import of_kind

COLOUR = {"hvo=off": "green", "hvo=unbatched": "red", "hvo=batched": "orange", "hvo=on": "blue"}
SIZES = ("1 GiB", "2 MiB")


def side(record):
    if record.kind == "history":
        return f"hvo={record['mode']}"
    return f"Linux {record['kernel'].partition('-')[0]} {'with' if record['optimise'] else 'without'} HVO"


def sides(captures):
    """{(memory, side): {day: (pages of 1 GiB, of 2 MiB)}}; of several runs the last counts."""
    found = {}
    records = of_kind(captures, "history") + [r for r in of_kind(captures, "linux") if r["what"] == "history"]
    for r in records:
        memory = r.get("ram_bytes") or r.capture.facts.get("ram_bytes", 0)
        found.setdefault((-(-memory >> 30), side(r)), {})[r["day"]] = (r["large"], r["small"])
    return found


def table(found, kind):
    last = max(max(days) for days in found.values())
    rows = [
        [f"{gib} GiB", name, *(days[day][kind] if day in days else "-" for day in (0, 1, last))]
        for (gib, name), days in sorted(found.items())
    ]
    return Table(["memory", "side", "fresh", "after a day", f"after {last} days"], rows, f"Pages of {SIZES[kind]} that can be had", left=2)


def section(paper, captures):
    found = sides(captures)
    if not found:
        return
    paper.add(Heading("After days of work"))
    paper.add(
        Text(
            "A day's work is as many pages of 1 GiB as there are, then pages of 2 MiB over three quarters of memory, then small pages over a"
            " quarter; all of it is given back. Then pages are counted that can be had, of either size."
        )
    )
    lines = [
        Series(name, [(day, pages[0]) for day, pages in days.items()], COLOUR.get(name), dashed=name.startswith("Linux"))
        for (_, name), days in sorted(found.items())
    ]
    svg = pictures.lines("history", lines, "days of work", "pages of 1 GiB that can be had")
    paper.add(table(found, 0), table(found, 1), Figure("history", svg, "Pages of 1 GiB after each day") if svg else None)
