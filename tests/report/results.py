"""Records that are shown as they are, a row each: those of every kind for which there is no section."""

import words
from paper import Heading, Table
from records import NEEDED

ROWS_MOST = 200


def named(captures):
    """{title of a table: records}, in the order in which they first come."""
    found = {}
    for record in (record for capture in captures for record in capture.records if record.kind not in NEEDED):
        found.setdefault(f"`{record.kind.removeprefix('result ')}`", []).append(record)
    return found


def cell(value):
    return f"{value:,}" if isinstance(value, (int, float)) else value


def table(title, records):
    """Columns are the keys of all records, in the order in which they first come; words stand left of numbers."""
    keys = list(dict.fromkeys(key for record in records for key in record.values))
    texts = [key for key in keys if any(isinstance(record.get(key), str) for record in records)]
    keys = texts + [key for key in keys if key not in texts]
    rows = [
        [record.capture.name, words.WHERE.get(record.capture.where, record.capture.where)] + [cell(record.get(key, "-")) for key in keys]
        for record in records[:ROWS_MOST]
    ]
    return Table(["console", "machine", *keys], rows, title, left=2 + len(texts))


def section(paper, captures):
    found = named(captures)
    if found:
        paper.add(Heading("Other records"))
        paper.text("As they were recorded, by benchmarks and by programs that are linked to the kernel.")
    for title, records in found.items():
        paper.add(table(title, records))
        if len(records) > ROWS_MOST:
            paper.note(f"{len(records) - ROWS_MOST} more records of {title} are not shown.")
