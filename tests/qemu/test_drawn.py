"""Mutants that a seed draws (tests/mutants/candidates.py): the marks of those that no test can notice."""

import candidates
from machine import ROOT


def test_each_mark_names_a_line_that_is_there():
    draw, lost = candidates.Draw(ROOT), []
    for path, function, before, after in candidates.read_marks(ROOT / "tests/mutants/equivalent.txt"):
        lines = draw.sources[path].lines if path in draw.sources else []
        there = [n for n, line in enumerate(lines) if line.strip() == before and candidates.function_at(lines, n) == function]
        if not there or before == after:
            lost.append((path, function, before))
    assert not lost
