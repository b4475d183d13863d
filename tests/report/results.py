"""Results that programs linked to the kernel record (`ashlar_result()`): a table for each name, a row for each record."""

import words
from paper import Heading, Table

ROWS_MOST = 200
KIND = "result "


def named(captures):
    """{name: records}, in the order in which the names first come."""
    found = {}
    for capture in captures:
        for record in capture.records:
            if record.kind.startswith(KIND):
                found.setdefault(record.kind.removeprefix(KIND), []).append(record)
    return found


def cell(value):
    return f"{value:,}" if isinstance(value, (int, float)) else value


def table(name, records):
    """Columns are the keys of all records, in the order in which they first come; words stand left of numbers."""
    keys = list(dict.fromkeys(key for record in records for key in record.values))
    texts = [key for key in keys if any(isinstance(record.get(key), str) for record in records)]
    keys = texts + [key for key in keys if key not in texts]
    rows = [
        [record.capture.name, words.WHERE.get(record.capture.where, record.capture.where)] + [cell(record.get(key, "-")) for key in keys]
        for record in records[:ROWS_MOST]
    ]
    return Table(["run", "machine", *keys], rows, f"`{name}`", left=2 + len(texts))


def section(paper, captures):
    found = named(captures)
    if found:
        paper.add(Heading("Results of programs"))
        paper.text("Recorded by programs that are linked to the kernel, in the units that they chose.")
    for name, records in found.items():
        paper.add(table(name, records))
        if len(records) > ROWS_MOST:
            paper.note(f"{len(records) - ROWS_MOST} more records of `{name}` are not shown.")
