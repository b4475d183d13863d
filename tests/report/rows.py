"""Tables of records. A row has the records that may be added up; what it is compared with is another row of the same table."""

from collections import Counter

import words
from paper import Table, anchor
from records import Spread


ONE_RUN = "; one run, which says nothing of how much runs differ"


class Row:
    """Records with the same words under all keys."""

    def __init__(self, key, rows):
        self.key, self.rows, self.records, self.turns = key, rows, [], []

    @property
    def last(self):
        return self.records[-1]

    @property
    def is_cold(self):
        return self.last.is_cold

    def spread(self, value, way=None, word=None):
        """The Spread of value(record), of those records for which way(record) is the word if a way is given; None without such a record."""
        values = [value(record) for record in self.records if way is None or way(record) == word]
        return Spread(values) if values else None

    def by_turn(self, values):
        """{turn: value} of a value for each record."""
        return dict(zip(self.turns, values))

    def beside(self, **other):
        """The row whose key differs in these words only, or None."""
        return self.rows.get(tuple({**self.key, **other}.values()))

    def base(self, **other):
        """The row beside it, to be compared with; None of memory that was cold."""
        return None if self.is_cold else self.beside(**other)

    def ratio(self, value, **other):
        """The Spread of value(record), each divided by that of its turn in the row beside it; None without such a row."""
        base = self.base(**other)
        return spread_of_ratios(*(row.by_turn(map(value, row.records)) for row in (self, base))) if base else None


def spread_of_ratios(values, bases):
    """The Spread of ratios of two {turn: value}, or None. A turn that only one side has counts for nothing."""
    ratios = [value / bases[turn] for turn, value in values.items() if bases.get(turn)]
    return Spread(ratios) if ratios else None


def rows_of(records, timed=True, **keys):
    """
    The rows of the records, in the order of their first ones. Each key is the name of a column and a function of a record. Records of cold
    memory have rows of their own if times are shown; a record's turn is its number among all with its keys.
    """
    rows, turns = {}, Counter()
    for record in records:
        key = {name: function(record) for name, function in keys.items()}
        turn = tuple(key.values())
        if timed and record.is_cold:
            key |= {name: f"{word}, cold" for name, word in list(key.items())[:1]}
        row = rows.setdefault(tuple(key.values()), Row(key, rows))
        row.records.append(record)
        row.turns.append(turns[turn])
        turns[turn] += 1
    return list(rows.values())


def table(caption, rows, columns, published=(), ours=lambda row: False, left=1):
    """The keys of each row and then its columns, {head: function of a Row}. Published rows come first. None without rows."""
    if not rows:
        return None
    cells = [[*row.key.values(), *(cell(row) for cell in columns.values())] for row in rows]
    mark = tuple(len(published) + i for i, row in enumerate(rows) if ours(row))
    counts = [count for name, count in columns.items() if name == "runs" or count is runs]
    if counts and all(counts[0](row) == 1 for row in rows):
        caption += ONE_RUN
    links = [None] * len(published) + [{"href": f"#{anchor(row.last.capture.name)}"} for row in rows]
    return Table([*rows[0].key, *columns], [*published, *cells], caption, left=left, ours=mark, links=links)


def machine(record):
    return words.WHERE.get(record.capture.where, record.capture.where)


def place(record):
    """The machine, and its CPUs."""
    return words.place(record.capture.where, record.capture.facts.get("cpus", "?"))


def ram(record):
    size = record.capture.facts.get("ram_bytes", 0)
    return words.size(size) if size else "?"


def memory(record):
    """The memory of the machine in whole GiB, as the record has it."""
    return f"{-(-(record.get('ram_bytes') or record.capture.facts.get('ram_bytes', 0)) >> 30)} GiB"


def item(name, default="-"):
    return lambda record: record.get(name, default)


def last(name):
    return lambda row: row.last.get(name, "-")


def median(value, scale=1.0, way=None, word=None):
    """The column that has the median and the range of value(record), of those records for which way(record) is the word if there is one."""

    def cell(row):
        return words.spread(row.spread(value, way, word), scale)

    return cell


def runs(row):
    return len(row.records)
