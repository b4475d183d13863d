"""Each promise of tests/PROMISES.md has a mutant, and each mutant names a promise, a case that exists, and code that is there."""

import functools
import re
import runpy
from collections import Counter

import change
import mutants
import promises
import pytest
from ktap import Ktap
from machine import ROOT
from typed import case_names

KEYS = [key for key, _ in promises.promises()]
MUTANTS = promises.every_mutant()


@functools.cache
def model_runs():
    return {"model/" + run.name for run in runpy.run_path(str(ROOT / "tests/model/run.py"))["CORRECT"]}


def exists(test):
    if "::" not in test:
        return test in case_names() or test in model_runs()
    file, function = test.split("::")
    path = ROOT / "tests/qemu" / file
    return path.exists() and re.search(rf"^def {function}\(", path.read_text(encoding="utf-8"), re.M)


def test_each_promise_is_one_line_with_a_key_of_its_own():
    page = (ROOT / "tests/PROMISES.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", page, flags=re.M)[1:]
    assert len(sections) >= 6 and len(KEYS) == len(set(KEYS)) == len(re.findall(r"^- ", page, re.M))
    for section in sections:
        names = {key.partition(".")[0] for key in re.findall(r"^- \[([^\]]+)\]", section, re.M)}
        assert len(names) == 1, section.splitlines()[0]


def test_each_promise_has_a_mutant_and_each_mutant_a_promise():
    named = {key for mutant in MUTANTS for key in mutant.promises}
    assert named == set(KEYS), sorted(named ^ set(KEYS))


def test_each_mutant_has_a_number_of_its_own():
    assert not [number for number, times in Counter(mutant.number for mutant in MUTANTS).items() if times > 1]


def test_each_case_of_a_mutant_exists():
    missing = [(mutant.number, case) for mutant in MUTANTS for case in mutant.tests if not exists(case)]
    assert all(mutant.tests for mutant in MUTANTS) and not missing, missing


def test_other_tests_of_a_promise_exist_and_are_no_case_of_its_mutants():
    cases = {(key, case) for mutant in MUTANTS for key in mutant.promises for case in mutant.tests}
    wrong = [(key, test) for key, test in promises.also() if key not in KEYS or not exists(test) or (key, test) in cases]
    assert not wrong, wrong


def test_every_mutant_fits_the_code():
    wrong = []
    for path in sorted((ROOT / "tests/mutants").glob("*.mutant")):
        try:
            change.spans(ROOT, path)
        except change.DoesNotFit as why:
            wrong.append(f"{path.name}: {why}")
    assert not wrong, "\n".join(wrong)


SUITE = ["KTAP version 1", "1..1", "  # Subtest: mm.x", "  1..1"]


@pytest.mark.parametrize("lines, how", [
    (["  # mm.x.one: a.c:3: 1 is not 2", "  not ok 1 one"], "failed"),
    (["  # mm.x.one: a.c:3: 1 is not 2", "PANIC on CPU 0: lost"], "failed"),
    (["  not ok 1 one # no verdict within 45 s of processor time"], "late"),
    (["watchdog: no progress for 30 s", "PANIC on CPU 1: the run hangs: no line"], "late"),
    (["  not ok 1 one # killed by signal 11"], "died"),
    (["PANIC on CPU 0: lost"], "died"),
    (["  ok 1 one", "ok 1 mm.x"], "passed"),
    (["  ok 1 one # SKIP needs two CPUs", "ok 1 mm.x"], "skipped"),
])
def test_what_a_crash_or_a_time_out_alone_noticed_is_told_from_a_case(lines, how):
    ktap = Ktap()
    for line in [*SUITE, *lines]:
        ktap.feed(line)
    assert mutants.how_it_ended(ktap, "mm.x.one") == how
