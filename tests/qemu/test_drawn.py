"""Mutants that a seed draws (tests/mutants/drawn.py): what is drawn, what is tried, and the marks of those that no test can notice."""

from contextlib import nullcontext
from types import SimpleNamespace

import candidates
import drawn
import pytest
from machine import ROOT
from reach import Reach


def test_each_mark_names_a_line_that_is_there():
    files, lost = {source.path: source.lines for source in candidates.sources(ROOT)}, []
    for path, function, before, after in candidates.read_marks(ROOT / "tests/mutants/equivalent.txt"):
        lines = files.get(path, [])
        there = [n for n, line in enumerate(lines) if line.strip() == before and candidates.function_at(lines, n) == function]
        if not there or before == after:
            lost.append((path, function, before))
    assert not lost


def test_headers_give_their_functions_and_assembly_its_instructions():
    header = ["int f(int a,", "      int b);", "#define N 1", "struct s {", "\tint a;", "};"]
    header += ["static inline int g(int a)", "{", "\treturn a + 1;", "}"]
    assert candidates.left_out("mm/a.h", header) == {0, 1, 2, 3, 4, 5, 7, 9}
    assembly = [".globl entry", "entry:", "\tmov $1, %rax", "\t.byte 1", "1:\tjmp 1b", "\tret"]
    assert candidates.left_out("boot/a.S", assembly) == {0, 1, 3, 4}


def test_the_cases_that_reach_a_line_are_known():
    known = Reach.__new__(Reach)
    known.cases, known.lines = ["a.b.c", "a.b.d", "a.e.f"], {"mm/a.c": {"10": "7", "14": "2", "30": "4"}}
    assert known.of("mm/a.c", 15, range(9, 20)) == (["a.b.d"], ["a.b.c", "a.b.d", "a.e.f"])
    assert known.of("mm/a.c", 12, range(9, 20))[0] == known.cases
    assert known.of("mm/a.c", 31, range(30, 33)) == (["a.e.f"], ["a.e.f"])
    assert known.of("mm/a.c", 25, range(0)) == known.of("mm/b.c", 10, range(9, 20)) == ([], [])


def test_what_noticed_is_told():
    run = "# | not ok\n# mm.a.b: {}"
    assert drawn.kind_of(run.format("no verdict within 20 s of processor time")) == "a time-out"
    assert drawn.kind_of(run.format("killed by signal 11")) == "a crash"
    assert drawn.kind_of("# mm/a.c:3: 1, expected 2") == "a case"


@pytest.mark.parametrize(("outcome", "news", "same_sources", "others"), [
    ("refused", {}, "refused", ""),
    ("same", {}, "same", ""),
    ("survived", {}, "survived", "counted"),
    ("noticed", {"stage": "reach", "case": "mm.a.there"}, "noticed", "noticed"),
    ("noticed", {"stage": "reach", "case": "mm.a.*"}, "noticed", "noticed"),
    ("noticed", {"stage": "reach", "case": "mm.a.gone"}, "counted", "counted"),
    ("noticed", {"stage": "machines", "case": "test_replay.py"}, "noticed", "noticed"),
    ("noticed", {"stage": "machines", "case": "test_gone.py"}, "counted", "counted"),
])  # fmt: skip
def test_a_result_is_kept_where_it_cannot_have_changed(tmp_path, outcome, news, same_sources, others):
    def results(sources):
        known = drawn.Results(tmp_path / "rows/1.txt", tmp_path / "sifted-1.txt", sources, sources)
        known.cases = {"mm.a.there"}
        return known

    mutant = candidates.Candidate(candidates.Source("mm/a.c", "a\n"), 1, "f", "a", "b")
    results("here").put(mutant, outcome, **news)
    assert results("here").get(mutant)["outcome"] == same_sources
    assert results("there").get(mutant)["outcome"] == others


def test_what_the_unbroken_tree_fails_too_notices_nothing(monkeypatch):
    worker = drawn.Worker(SimpleNamespace(make=lambda target: ""))
    worker.objects, worker.broken = lambda candidate: [], lambda candidate, objects: nullcontext()
    worker._stages = lambda *_: dict(zip(("stage", "case"), worker._by_one("test_x.py") or ()))
    monkeypatch.setattr(drawn, "pytest_outcome", lambda tree, test: "failed")
    assert worker.judge(None) == {}


def test_cases_behind_one_that_fails_by_luck_are_tried(monkeypatch):
    worker = drawn.Worker.__new__(drawn.Worker)
    worker.tree, worker.reach = None, SimpleNamespace(seconds={"mm.x.lucky": 0, "mm.x.notices": 0})

    def failure(_tree, cases, _seconds, program=drawn.HOSTED):
        if program == drawn.UNBROKEN:
            return ("mm.x.always", "a case") if cases == ["mm.x.always"] else None
        if "mm.x.always" in cases:
            return "mm.x.always", "a case"
        if cases == ["mm.x.lucky", "mm.x.notices"]:
            return "mm.x.lucky", "a time-out"
        return ("mm.x.notices", "a case") if "mm.x.notices" in cases else None

    monkeypatch.setattr(drawn, "hosted_failure", failure)
    assert worker._hosted("mm/a.c", [], list(worker.reach.seconds)) == ("reach", "mm.x.notices", "a case")
    worker.reach.seconds = {"mm.x.always": 0, "mm.x.notices": 0}  # the first fails in the unbroken kernel, too
    assert worker._hosted("mm/a.c", [], list(worker.reach.seconds)) == ("reach", "mm.x.notices", "a case")


def test_a_rate_has_its_range():
    assert drawn.rate(95, 100) == "95.0% (88.8 to 97.8)"
    assert drawn.rate(3, 3) == "100.0% (43.8 to 100.0)"
    assert drawn.rate(0, 0) == "-"
