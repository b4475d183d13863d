"""Two sets of consoles or records, old and new, row by row, as benchstat compares them: medians, change, chance, number of runs.

A row is a machine with its command, a kind of records, their settings, and a number that was measured. A boot is one run of a row and
gives the median of its records, because what differs between boots, such as where pages lie, is the same for all of them. If each side is
one boot, its records count as runs.

A difference counts if chance alone would make it in fewer than 1 of 20 cases, by the U test (Mann and Whitney, "On a test of whether one of
two random variables is stochastically larger than the other", 1947), which asks only in what order the values of both sides lie. Lower is
better for a time; of other numbers, those that differ are listed.
"""

import itertools
import math
import statistics
import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass

import words
from records import parse_file

ALPHA = 0.05
EXACT_MOST = 100  # runs of both sides; of more, the sum of ranks is taken for normally distributed


def doubled_ranks(values):
    """The rank of each value, twice, so that the mean rank of equal values is whole, too."""
    ordered = sorted(values)
    return [bisect_left(ordered, value) + bisect_right(ordered, value) + 1 for value in values]


def ways_by_sum(ranks, count):
    """(number, bits): `bits` bits of the number, from bit SUM * bits on, say in how many ways `count` of the ranks have this sum."""
    bits = len(ranks) + 1  # room for the number of all ways
    chosen = [1] + [0] * count
    for rank, taken in itertools.product(ranks, range(count, 0, -1)):
        chosen[taken] += chosen[taken - 1] << rank * bits
    return chosen[count], bits


def probability(old, new):
    """How often chance deals all values to two sides in an order at least as uneven, either way."""
    ranks = doubled_ranks(old + new)
    total, count = sum(ranks[: len(old)]), len(ranks)
    if count > EXACT_MOST:
        sd = math.sqrt(statistics.variance(ranks) * len(old) * len(new) / count)
        far = max(abs(total - len(old) * (count + 1)) - 1, 0)
        return 2 * statistics.NormalDist().cdf(-far / sd) if sd else 1.0
    ways, bits = ways_by_sum(ranks, len(old))
    ones = (1 << bits) - 1  # a number is the sum of its digits, modulo the base less one
    at_most = (ways & ((1 << (total + 1) * bits) - 1)) % ones
    at_least = (ways >> total * bits) % ones
    return min(1.0, 2 * min(at_most, at_least) / math.comb(count, len(old)))


def can_differ(old, new):
    """Whether so many runs can show a difference at all."""
    return 2 / math.comb(old + new, old) <= ALPHA


def interval(values):
    """Two values between which the true median lies with a probability of 95%; of fewer than six, the first and the last."""
    ordered, runs = sorted(values), len(values)
    outside = itertools.accumulate(math.comb(runs, i) / 2 ** (runs - 1) for i in range(runs))
    cut = max(sum(1 for _ in itertools.takewhile(lambda chance: chance <= 0.05, outside)) - 1, 0)
    return ordered[cut], ordered[-1 - cut]


def with_interval(values):
    median = statistics.median(values)
    far = max(abs(bound - median) for bound in interval(values))
    return words.figure(median) + (f" ±{100 * far / abs(median):.0f}%" if median and len(values) > 1 else "")


def is_time(key):
    return key == "ns" or key.startswith("ns_")


@dataclass
class Row:
    """Both sides come as the values of each of their boots."""

    place: str
    kind: str
    settings: dict
    key: str
    old: list
    new: list

    def __post_init__(self):
        self.single = max(len(self.old), len(self.new)) == 1
        self.old, self.new = (runs_of(boots, self.single) for boots in (self.old, self.new))
        self.p = probability(self.old, self.new) if self.old and self.new else None
        self.outcome = self.judged()
        self.differs = self.outcome in ("rose", "fell")

    def judged(self):
        if self.p is None:
            return "only in old" if self.old else "only in new"
        if not can_differ(len(self.old), len(self.new)):
            return f"needs {next(runs for runs in itertools.count(1) if can_differ(runs, runs))} runs"
        was, now = statistics.median(self.old), statistics.median(self.new)
        return "no difference" if self.p > ALPHA or was == now else "fell" if now < was else "rose"

    def cells(self, common):
        name = " ".join(f"{key}={value}" for key, value in self.settings.items() if key not in common)
        sides = (with_interval(side) if side else "-" for side in (self.old, self.new))
        change = [self.outcome, words.percent(*map(statistics.median, (self.new, self.old)))] if self.differs else [self.outcome]
        p = "" if self.p is None else f"p={self.p:.3f}"
        return [name, self.key, *sides, " ".join(change), p, f"n={len(self.old)}+{len(self.new)}"]


def runs_of(boots, single):
    return [value for boot in boots for value in (boot if single else [statistics.median(boot)])]


def samples(captures):
    """{(place, kind, settings, key): {boot: values}}. Memory that was cold is compared with nothing: nobody knows how cold it was."""
    found = {}
    for capture in captures:
        machine = words.place(capture.where, capture.facts.get("cpus", "?"))
        place = ": ".join(filter(None, (machine, capture.facts.get("command"))))
        for record in capture.records:
            for key, value in () if record.is_cold else record.measured.items():
                boots = found.setdefault((place, record.kind, tuple(record.settings.items()), key), {})
                boots.setdefault((capture.name, record.boot), []).append(value)
    return found


def compare(old, new):
    """The Rows of two lists of Captures, in the order in which they first come."""
    before, after = samples(old), samples(new)
    rows = []
    for row in before | after:
        place, kind, settings, key = row
        rows.append(Row(place, kind, dict(settings), key, *(list(side.get(row, {}).values()) for side in (before, after))))
    return [row for row in rows if is_time(row.key) or row.differs]


def shared(rows):
    """Settings that all of these rows have."""
    return {key: value for key, value in rows[0].settings.items() if all(row.settings.get(key) == value for row in rows)}


def table_lines(kind, rows):
    common = shared(rows)
    cells = [["", "", "old", "new", "change", "", ""], *(row.cells(common) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    pads = (str.ljust, str.ljust, str.rjust, str.rjust, str.ljust, str.ljust, str.ljust)
    lines = ("  ".join(pad(*cell) for pad, *cell in zip(pads, line, widths)).rstrip() for line in cells)
    return [" ".join([kind, *(f"{key}={value}" for key, value in common.items())]), *(f"  {line}" for line in lines), ""]


def tables(rows):
    """The lines of all tables: one for each kind of records of each place."""
    found = {}
    for row in rows:
        found.setdefault(row.place, {}).setdefault(row.kind, []).append(row)
    for place, kinds in found.items():
        yield from (place, "")
        for kind, of_kind in kinds.items():
            yield from table_lines(kind, of_kind)


def summary(rows, captures):
    counts = Counter(row.outcome for row in rows)
    yield f"{len(rows)} rows: " + ", ".join(f"{outcome} {count}" for outcome, count in counts.items()) + "."
    yield "±: 95% interval of the median, or the range of fewer than 6 runs."
    yield f"Of rows that do not differ, {ALPHA:.0%} seem to, by chance."
    if any(row.single and row.differs for row in rows):
        yield "Where each side is one boot, a difference may be that of two boots of the same code."
    busy = [capture.busy for capture in captures if capture.busy is not None]
    if busy:
        yield f"Other work on the host just before the runs: {min(busy):.2f} to {max(busy):.2f} CPUs."


def complaints(captures, side):
    """What is wrong with the consoles of a side. A line that is torn is no record."""
    for capture in captures:
        yield from (f"{side} {capture.name}:{line}: begins as a record and is not whole" for line in capture.torn_at)
        yield from [f"{side} {capture.name}: {capture.problem}"] if capture.problem else []


def status_of(rows, new):
    """0: nothing is worse; 1: a time rose, the new side lacks a row, or a run of it failed; 2: no row could be judged."""
    worse = any(row.outcome == "only in old" or (row.outcome == "rose" and is_time(row.key)) for row in rows)
    if worse or any(capture.problem for capture in new):
        return 1
    return 0 if any(row.differs or row.outcome == "no difference" for row in rows) else 2


def captures_of(path):
    """Those of a console, of a records.jsonl, or of a folder: of its consoles, or if it has none, of its records.jsonl."""
    paths = (sorted(path.glob("*.console")) or [path / "records.jsonl"]) if path.is_dir() else [path]
    return [capture for one in paths for capture in parse_file(one)]


def main(old, new):
    before, after = captures_of(old), captures_of(new)
    for complaint in (*complaints(before, "old"), *complaints(after, "new")):
        print(complaint, file=sys.stderr)
    for path, side in ((old, before), (new, after)):
        if not any(capture.records for capture in side):
            print(f"compare: {path}: no record in it; what can be compared are consoles, folders of them and records.jsonl", file=sys.stderr)
            return 2
    rows = compare(before, after)
    print("\n".join((*tables(rows), *summary(rows, before + after))))
    return status_of(rows, after)
