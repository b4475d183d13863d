"""tests/PROMISES.md names cases, model runs, tests and mutants that exist. It names all mutants, and each test stands beside a mutant that
it catches."""

import functools
import re
import sys

import pytest
from machine import ROOT
from typed import case_names

sys.path.insert(0, str(ROOT / "tests/mutants"))

import change  # noqa: E402

PAGE = (ROOT / "tests/PROMISES.md").read_text(encoding="utf-8")
ROWS = [row for row in re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", PAGE, re.M) if row[1] != "would fail"]


@functools.cache
def model_runs():
    namespace = {"__name__": "run", "__file__": str(ROOT / "tests/model/run.py")}
    exec(compile((ROOT / "tests/model/run.py").read_text(encoding="utf-8"), "run.py", "exec"), namespace)
    return {"model/" + run.name for run in namespace["CORRECT"]}


def caught_by(number):
    """The cases, runs and tests that catch the one mutant with this number, by their names in PROMISES.md."""
    paths = list((ROOT / "tests/mutants").glob(f"{number}-*.mutant"))
    assert len(paths) == 1, f"mutant {number}: {paths}"
    header = dict(re.findall(r"^([A-Z][a-z]+): (.+)$", paths[0].read_text(encoding="utf-8").split("\nIn: ")[0], re.M))
    cases = set(header["Case"].split(", "))
    if header["Build"] == "spin":  # tests/mutants/run.py requires that steps.txt notices the code half of these
        return {"model/" + case for case in cases} | {"test_steps.py::test_the_code_says_each_step"}
    return cases


def names(text):
    return set(re.findall(r"`([^`]+)`", text))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: re.sub(r"\W+", "_", row[0])[:60])
def test_what_is_named_exists(row):
    named = names(row[1])
    python = {name for name in named if "::" in name}
    missing = named - python - case_names() - model_runs()
    assert named and not missing, missing
    for name in python:
        file, function = name.split("::")
        assert re.search(rf"^def {function}\(", (ROOT / "tests/qemu" / file).read_text(encoding="utf-8"), re.M), name


@pytest.mark.parametrize("row", ROWS, ids=lambda row: re.sub(r"\W+", "_", row[0])[:60])
def test_each_test_catches_a_mutant_of_its_row(row):
    """Tests behind the word "also" are exempt. No mutant stands beside tests of which none catches it."""
    named, shown = names(re.split(r"\balso\b", row[1])[0]), set()
    for number in row[2].split(", "):
        assert caught_by(number) & named, f"mutant {number} is caught by {caught_by(number)}, which is not named beside it"
        shown |= caught_by(number)
    assert named <= shown, f"no mutant of the row is caught by {named - shown}"


def test_every_mutant_is_named():
    named = {int(number) for row in ROWS for number in row[2].split(", ")}
    there = {int(path.name.partition("-")[0]) for path in (ROOT / "tests/mutants").glob("*.mutant")}
    assert there == named, sorted(there ^ named)


def test_every_promise_has_rows():
    sections = re.split(r"^## ", PAGE, flags=re.M)[1:]
    assert len(sections) >= 6
    assert all(re.search(r"^\| .+ \| `.+ \| .*\d", section, re.M) for section in sections)


def test_every_mutant_fits_the_code():
    wrong = []
    for path in sorted((ROOT / "tests/mutants").glob("*.mutant")):
        try:
            change.spans(ROOT, path)
        except change.DoesNotFit as why:
            wrong.append(f"{path.name}: {why}")
    assert not wrong, "\n".join(wrong)


OLD = """int other(void)
{
	return 1;
}

/* Adds. */
static int add(int a,
	       int b)
{
	int sum = a + b; /* both */

	if (sum)
		return sum;
	return 0;
}
"""
CHANGES = {
    "moved": ("In: add\n-	int sum = a\n-		+ b;\n+	int sum = a;\n", "int sum = a; /* both */"),
    "inserted": ("In: add\n+	a++;\n 	if (sum)\n", "a++;\n\tif (sum)"),
    "twice": ("In: add\n-return\n+give\n", "add: found 2 times: return"),
    "gone": ("In: add\n-return 1;\n+return 2;\n", "add: found 0 times: return 1 ;"),
    "nothing": ("In: add\n+return 1;\n", "add: found no times: "),
    "elsewhere": ("In: take\n-return 1;\n", "take: defined in 0 files"),
    "the whole file": ("In: mm/a.c\n-return 1;\n+return 2;\n", "return 2;"),
    "two changes": ("In: add\n-return sum;\n+return 0;\n\n-return 0;\n+return sum;\n", "return 0;\n\treturn sum;"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_mutant_is_words_in_a_function(kind, tmp_path):
    text, wanted = CHANGES[kind]
    (tmp_path / "mm").mkdir()
    (tmp_path / "mm/a.c").write_text(OLD)
    (tmp_path / "1-x.mutant").write_text("Break: x\n" + text)
    try:
        before = change.apply(tmp_path, tmp_path / "1-x.mutant")
    except change.DoesNotFit as why:
        assert str(why) == wanted
    else:
        assert wanted in (tmp_path / "mm/a.c").read_text()
        change.undo(before)
    assert (tmp_path / "mm/a.c").read_text() == OLD
