"""The table of `make test WHAT=proof`: what runs, what is kept, and what does not count as passed, of rows made up here."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import matrix
import patience
import pytest
from machine import ROOT
from mutants import every_mutant
from proof import HEAD, LISTS, NEEDS, ROWS, Proof, Row

COUNT = "echo run >>count-{0}; echo {1} passed, 0 failed, 0 skipped"
SECONDS = 200


def row(name, minutes=1.0, passed=3, after="", sources=("mm/*",), **more):
    return Row(name, minutes, COUNT.format(name, passed) + after, sources, **more)


@pytest.fixture
def tree(tmp_path):
    """A repository with a source, a page and a measured figure, and the rows as they are run on it."""
    for path in ("mm/a.c", "kernel/b.c", "mm/README.md", "tests/report/measurements/figures.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("1\n")
    (tmp_path / ".gitignore").write_text("count-*\nbuild/\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "a"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def proof(tree, *rows):
    return Proof(tree, rows, tree / "tests/report/measurements/proof.txt", tree / "build")


def runs(tree, name):
    """How often a row ran."""
    count = tree / f"count-{name}"
    return len(count.read_text().splitlines()) if count.exists() else 0


def living(group):
    """The processes of a group; what has ended may wait for its parent for ever."""
    texts = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            texts.append(path.read_text(encoding="utf-8", errors="replace"))
    return [text for text in texts if text.rpartition(")")[2].split()[2] == group and text.rpartition(")")[2].split()[0] != "Z"]


def test_a_row_that_passed_runs_again_only_if_its_sources_change(tree, capsys):
    rows = (row("one"), row("other", sources=("*",)), row("pages", sources=("*", "*.md")))
    assert proof(tree, *rows).all() and capsys.readouterr().out.index("to run   one: never run") >= 0
    assert proof(tree, *rows).all() and "holds    one: " in capsys.readouterr().out
    for path, expected in (
        ("tests/report/measurements/figures.txt", (1, 1, 1)),
        ("mm/README.md", (1, 1, 2)),
        ("kernel/b.c", (1, 2, 3)),
        ("kernel/new.c", (1, 3, 4)),
        ("mm/a.c", (2, 4, 5)),
    ):
        (tree / path).write_text("2\n")
        assert proof(tree, *rows).all()
        assert tuple(runs(tree, one.name) for one in rows) == expected, path
    assert "to run   one: changed since 2" in capsys.readouterr().out
    (tree / "mm/a.c").unlink()
    assert proof(tree, *rows).all() and runs(tree, "one") == 3
    assert proof(tree, rows[0]._replace(command=COUNT.format("one", 4)), *rows[1:]).all() and runs(tree, "one") == 4
    kept = proof(tree, *rows).kept
    assert kept["one"]["commit"].endswith("+") and kept["one"]["said"] == "4 passed, 0 failed, 0 skipped"
    assert set(kept) == {"one", "other", "pages"}


FAILURES = {
    "status": ("; exit 3", "failed", "status 3; 1 passed, 0 failed, 0 skipped"),
    "nothing": ("; echo 0 passed, 0 failed, 9 skipped", "failed", "it passed nothing; 0 passed, 0 failed, 9 skipped"),
    "silent": (" >/dev/null", "failed", "it passed nothing; nothing"),
    "changing": ("; echo 2 >>mm/a.c", "failed", "its sources changed while it ran; 1 passed, 0 failed, 0 skipped"),
    "hangs": ("; sleep 1000", "failed", "not done after 1 s"),
}


@pytest.mark.parametrize("how", FAILURES)
def test_what_does_not_pass_is_told_and_runs_again(tree, how, capsys, monkeypatch):
    after, result, said = FAILURES[how]
    if how == "hangs":
        monkeypatch.setattr("proof.LIMIT", 1)
    bad, good = row("bad", passed=1, after=after), row("good", minutes=2)
    assert not proof(tree, bad, good).all()
    kept = proof(tree).kept
    assert (kept["bad"]["result"], kept["bad"]["said"]) == (result, said) and kept["good"]["result"] == "passed"
    assert capsys.readouterr().out.endswith("1 of 2 rows hold; not: bad\n")
    assert not proof(tree, bad, good).all() and runs(tree, "good") == 1 and runs(tree, "bad") == 2
    assert "to run   bad: failed on 2" in capsys.readouterr().out


def test_a_row_does_not_hear_what_was_typed_for_the_proof(tree, monkeypatch):
    for name in ("T", "N", "WHAT", "MAKEFLAGS", "CPUS"):
        monkeypatch.setenv(name, "2")
    assert proof(tree, Row("deaf", 1, "echo 1 passed, 0 failed: $T$N$WHAT$MAKEFLAGS$CPUS", ("mm/*",))).all()
    assert proof(tree).kept["deaf"]["said"] == "1 passed, 0 failed:"


def test_what_cannot_run_here_says_why_and_is_not_run(tree, monkeypatch):
    monkeypatch.setitem(NEEDS, "moon", ("false", "needs the moon"))
    far = row("far", needs="moon")
    assert not proof(tree, far).all() and not runs(tree, "far")
    assert (proof(tree).kept["far"]["result"], proof(tree).kept["far"]["said"]) == ("not here", "needs the moon")
    monkeypatch.setitem(NEEDS, "moon", ("true", ""))
    assert proof(tree, far).all() and runs(tree, "far") == 1


def test_the_quickest_row_comes_first_and_a_run_that_is_cut_off_goes_on(tree):
    """The row that runs when the end comes leaves no process and no result."""
    slow = "echo $$ >count-slow.new && mv count-slow.new count-slow; sleep 1000"
    program = "import signal, sys; from pathlib import Path; from proof import Proof, Row; "
    program += "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143)); "
    rows = f"(Row('slow', 9, {slow!r}, ('mm/*',)), Row('quick', 1, {COUNT.format('quick', 3)!r}, ('mm/*',)))"
    program += f"Proof(Path('.'), {rows}, Path('tests/report/measurements/proof.txt'), Path('build')).all()"
    environment = dict(os.environ, PYTHONPATH=f"{ROOT}/tests:{ROOT}/tests/qemu")
    with subprocess.Popen([sys.executable, "-c", program], cwd=tree, env=environment, stdout=subprocess.DEVNULL) as driver:
        patience.until((tree / "count-slow").exists, SECONDS)
        table = (tree / "tests/report/measurements/proof.txt").read_text()
        driver.send_signal(signal.SIGTERM)
        assert driver.wait(SECONDS) == 143
    assert re.fullmatch(rf"{re.escape(HEAD)}\n# 1 of 2 rows hold in \w+\n# never run: slow\nquick \| passed \| .*\n", table), table
    assert not living((tree / "count-slow").read_text().strip())
    slow = row("slow", minutes=9)
    assert proof(tree, slow, row("quick")).all() and runs(tree, "quick") == 1 and set(proof(tree).kept) == {"slow", "quick"}


def test_the_rows_are_all_that_there_is():
    """Each mutant and each huge machine is in one row, and each row has sources, all of the product among them."""
    shards = [one for one in ROWS if one.name.startswith("mutants-")]
    for mutant in every_mutant():
        assert sum(fnmatchcase(mutant.name, one.command.split("'")[1]) for one in shards) == 1, mutant.name
        assert sum(fnmatchcase(f"tests/mutants/{mutant.path.name}", glob) for one in shards for glob in one.sources) == 1, mutant.name
    huge = [one.command.split("'")[1] for one in ROWS if one.name.startswith("huge-")]
    for machine in matrix.HUGE:
        assert sum(fnmatchcase(machine.name, glob) for glob in huge) == 1, machine.name
    assert len({one.name for one in ROWS}) == len(ROWS) and all(next(ROOT.glob(glob), None) for one in ROWS for glob in one.sources)
    for one in ROWS:
        assert set(LISTS["PRODUCT"]) <= set(one.sources) or "*" in one.sources
