"""What can still be had after days of work: pages of 1 GiB and 2 MiB, in each mode and on Linux."""

import pictures
import words
from paper import Figure, Heading
from pictures import Series
from records import of_kind
from rows import memory, rows_of, table

COLOUR = {"hvo=off": "green", "hvo=unbatched": "red", "hvo=batched": "orange", "hvo=on": "blue"}


def side(record):
    if record.kind == "history":
        return f"hvo={record['mode']}"
    return f"Linux {record['kernel'].partition('-')[0]} {'with' if record['optimise'] else 'without'} HVO"


def after(day, size):
    """Pages of a size after a day; of several runs the last counts."""
    return lambda row: {r["day"]: r[size] for r in row.records}.get(day, "-")


def section(paper, captures):
    records = of_kind(captures, "history") + of_kind(captures, "linux", what="history")
    if not records:
        return
    days = (0, 1, max(r["day"] for r in records))
    columns = {f"{name}, day {day}": after(day, size) for size, name in (("large", "1 GiB"), ("small", "2 MiB")) for day in days}
    paper.add(Heading("After days of work"))
    paper.text(words.prose("history"))
    several, had = len(set(map(memory, records))) > 1, {}
    for r in sorted(records, key=lambda r: (memory(r), side(r))):
        had.setdefault((memory(r), side(r)), {})[r["day"]] = r["large"]
    lines = [
        Series(f"{size}, {name}" if several else name, list(large.items()), None if several else COLOUR.get(name), name.startswith("Linux"))
        for (size, name), large in had.items()
    ]
    svg = pictures.lines("history", lines, "days of work", "pages of 1 GiB that can be had")
    paper.add(table("Pages that can be had", rows_of(records, timed=False, memory=memory, side=side), columns, left=2))
    paper.add(Figure("history", svg, "Pages of 1 GiB after each day"))
