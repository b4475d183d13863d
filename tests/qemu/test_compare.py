"""Two runs are compared: the U test against all ways to deal the values, made-up consoles, a real run. Records in other formats."""

import csv
import itertools
import json
import math
import random
import re
import subprocess

import against
import compare
import export
import legs
import pytest
from hosted import boot
from machine import ROOT
from records import parse, parse_json

ENDS = "ASHLAR-END verdict=pass code=0x10\n# capture where native\n"


def dealt(old, new):
    """How often a deal is as uneven as this one, by looking at every deal. U counts the pairs in which the old value is greater."""
    def u_of(left, right):
        return sum((a > b) + (a == b) / 2 for a in left for b in right)

    values, here = old + new, u_of(old, new)
    deals = [set(deal) for deal in itertools.combinations(range(len(values)), len(old))]
    all_u = [u_of([values[i] for i in deal], [v for i, v in enumerate(values) if i not in deal]) for deal in deals]
    return min(1, 2 * min(sum(u <= here for u in all_u), sum(u >= here for u in all_u)) / len(all_u))


def test_the_probability_is_that_of_all_deals():
    """With values of few kinds most are ties."""
    rng = random.Random(3)
    for _ in range(150):
        kinds = rng.choice((2, 5, 1000))
        old, new = ([rng.randrange(kinds) for _ in range(rng.randrange(1, 6))] for _ in range(2))
        assert math.isclose(compare.probability(old, new), dealt(old, new)), (old, new)


def test_many_runs_take_the_normal_distribution(monkeypatch):
    """It comes near the exact one, and equal values are no difference."""
    rng = random.Random(5)
    for shift in (0, 3, 8):
        old, new = ([rng.randrange(40) + more for _ in range(48)] for more in (0, shift))
        exact = compare.probability(old, new)
        with monkeypatch.context() as patched:
            patched.setattr(compare, "EXACT_MOST", 0)
            assert abs(compare.probability(old, new) - exact) < 0.01
    assert compare.probability([7] * 60, [7] * 60) == 1


def test_the_interval_of_a_median_has_its_share():
    """By the binomial distribution, in tables: the 2nd of 9 values, the 6th of 20. Six runs are the fewest."""
    for runs, outer in ((1, 1), (5, 1), (6, 1), (8, 1), (9, 2), (20, 6), (25, 8)):
        assert compare.interval(list(range(1, runs + 1))) == (outer, runs + 1 - outer), runs


def side(name, *values, words="mode=on pages=64", after="", of="ns"):
    """A console with a run for each value."""
    text = "".join(f"BENCH own {words} run={run} {of}={value} {after}\n" for run, value in enumerate(values, 1))
    return parse((text + ENDS).encode(), name)


def outcomes(old, new):
    return {row.key: row.outcome for row in compare.compare(old, new)}


@pytest.mark.parametrize("old, new, outcome, status", [
    ((10, 12, 11, 13), (11, 10, 13, 12), "no difference", 0),
    ((10, 12, 11, 13), (20, 22, 21, 23), "rose", 1),
    ((20, 22, 21, 23), (10, 12, 11, 13), "fell", 0),
    ((10, 10, 10, 10), (10, 10, 10, 10), "no difference", 0),
    ((10, 12, 11), (20, 22, 21), "needs 4 runs", 2),
    ((), (1, 2, 3, 4), "only in new", 2),
    ((1, 2, 3, 4), (), "only in old", 1),
])  # fmt: skip
def test_a_row_is_judged(old, new, outcome, status):
    old, new = [side("old", *old)], [side("new", *new)]
    assert outcomes(old, new) == {"ns": outcome} and compare.status_of(compare.compare(old, new), new) == status


def test_rows_are_those_of_equal_settings():
    """Another setting is another row; the gate fails if a row is gone or a run of the new side went wrong, though all else is equal."""
    both = (1, 2, 3, 4)
    old, new = [side("a", *both), side("b", *both, words="mode=off pages=64")], [side("c", *both)]
    cold = [side("c", *both, after="warm=no")]
    assert [row.outcome for row in compare.compare(old[:1], cold)] == ["only in old"], "what one side has warmed and the other has not"
    assert compare.compare(cold, cold) == [], "nobody knows how cold either was"
    rows = compare.compare(old, new)
    assert [(row.settings["mode"], row.outcome) for row in rows] == [("on", "no difference"), ("off", "only in old")]
    assert compare.status_of(rows, new) == 1
    crashed = [parse(("BENCH own mode=on pages=64 run=1 ns=1\n" * 4 + ENDS.replace("=pass", "=crash")).encode(), "c")]
    assert compare.status_of(compare.compare([side("a", *both)], crashed), crashed) == 1


def test_other_numbers_are_shown_if_they_differ():
    """Fewer faults are no failure and more are none; what is a word after the run is a note."""
    def judged(after):
        return outcomes([side("old", 5, 5, 5, 5, after="faults=3 pmu=none flushes=1")], [side("new", 5, 5, 5, 5, after=after)])

    assert judged("faults=9 pmu=cycles:7 flushes=1") == {"ns": "no difference", "faults": "rose"}


def test_a_boot_is_a_run():
    """Ten records of one boot say nothing of other boots of the same code."""
    slow, fast = (20, 21) * 5, (10, 11) * 5
    assert outcomes([side("old", *fast)], [side("new", *slow)]) == {"ns": "rose"}
    old, new = ([side(f"{name}{boot}", *values) for boot in range(3)] for name, values in (("old", fast), ("new", slow)))
    assert outcomes(old, new) == {"ns": "needs 4 runs"}
    assert outcomes([*old, side("old3", *fast)], [*new, side("new3", *slow)]) == {"ns": "rose"}


@pytest.fixture
def command(tmp_path):
    def run(old, new):
        for name, text in (("old", old), ("new", new)):
            (tmp_path / name).write_text(text, encoding="utf-8")
        argv = [ROOT / "tests/bench/compare", "old", "new"]
        return subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)

    return run


def test_the_command(command):
    """A torn line is named with its file and number, and is no run."""
    lines = "".join(f"BENCH own mode=on run={run} ns={{}}{run}\n" for run in range(1, 7)) + ENDS + "# capture busy 0.25\n"
    done = command(lines.format(*"333333"), lines.format(*"555555").replace("run=2 ns", "run=2 n s"))
    assert done.returncode == 1 and done.stderr == "new new:2: begins as a record and is not whole\n"
    assert re.search(r"^own mode=on\n.*\n +ns +33\.5 ±7% +54\.0 ±6% +rose \+61\.2 % +p=0\.004 +n=6\+5$", done.stdout, re.M), done.stdout
    assert "Other work on the host just before the runs: 0.25 to 0.25 CPUs." in done.stdout and "each side is one boot" in done.stdout
    assert command("", lines).returncode == 2


def test_a_real_run_beside_itself(build, command):
    """Every row has its five runs, and none differs. A run without some of the rows fails the gate."""
    console = boot(build, 'bench="hvo pages=16 runs=5 modes=off,on"', kind="native", mem="512M").stdout
    done = command(console, console)
    assert done.returncode == 0 and "rose" not in done.stdout and done.stdout.count("n=5+5") >= 4, done.stdout + done.stderr
    assert command(console, "\n".join(line for line in console.splitlines() if "op=free" not in line) + "\n").returncode == 1


def test_turns_alternate():
    """Each leg here after each leg there, and every boot is a console of its own."""
    leg = next(leg for leg in legs.LEGS if leg.name == "hvo-native")
    made = list(against.turns([leg], 2, "/tree/build"))
    assert [(leg.name, leg.tree) for leg in made] == [
        ("old/hvo-native-1", "/tree/build"), ("new/hvo-native-1", ""), ("old/hvo-native-2", "/tree/build"), ("new/hvo-native-2", "")]
    assert legs.argv_of(made[0], ROOT)[0][0] == "/tree/build/host/native/ashlar-host"
    assert legs.argv_of(made[0], ROOT)[1] == legs.argv_of(made[1], ROOT)[1], "the same command, so the same rows"


def test_a_revision_is_checked_out(tmp_path, monkeypatch):
    """Files that a revision lacks go, those that it has come, and what the user has changed and staged stays as it is."""
    mine, tree = tmp_path / "mine", tmp_path / "tree"
    monkeypatch.setattr(against, "ROOT", mine)

    def git(*words):
        return subprocess.run(["git", *words], cwd=mine, capture_output=True, text=True, check=True).stdout

    mine.mkdir()
    git("init", "-q")
    for name in ("first", "second"):
        (mine / name).write_text(name)
        git("add", name)
        git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", name)
        git("rm", "-q", name)
    (mine / "second").write_text("changed")
    before = git("status", "--porcelain")
    for revision, there in (("HEAD~1", {"first"}), ("HEAD", {"second"})):
        assert against.check_out(revision, tree) and {path.name for path in tree.iterdir()} == there
    assert (tree / "second").read_text() == "second"
    assert not against.check_out("no-such-revision", tree) and git("status", "--porcelain") == before


def test_records_for_other_programs(tmp_path):
    """The same figures in each format, and where they come from."""
    text = "BENCH own size=2M stride=64 run=3 ns=7.5 ns_open=5 seek_ns=4 hits=2 note=a/b\nRESULT own leaf=4K/x ns=1\n# capture command make run\n"
    capture = parse((text + ENDS).encode(), "mine")
    export.write([capture], tmp_path)
    first, second = map(json.loads, (tmp_path / "records.jsonl").read_text().splitlines())
    assert first == {"record.kind": "own", "record.line": 1, "record.boot": 0, "console.name": "mine", "console.where": "native",
                     "console.command": "make run", **capture.records[0].values}
    assert (second["record.kind"], second["leaf"]) == ("result own", "4K/x")
    with (tmp_path / "records.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["record.kind"], row["ns"], row["hits"]) for row in rows] == [("own", "7.5", "2"), ("result own", "1", "")]


def test_records_that_were_written_compare_as_their_console(command):
    """Figures, places and failed runs are the same. A line that is no record is named, and so is a file without any."""
    text = "BENCH boot cpus_started=1 nodes=1 ram_bytes=4096 ns_to_ready=5\n"
    text += "".join(f"BENCH own mode=on run={run} ns={run}.5 tiny=0.00001\nRESULT own leaf=4K/x ns={run}\n" for run in range(1, 5)) + ENDS
    captures = [parse(text.encode(), "hvo"), parse(text.replace("=pass", "=crash").encode(), "gone")]
    lines = export.to_json(captures)
    case = json.dumps({"case": "mm.x.good", "outcome": "passed", "ns": 1}) + "\n"
    done = command(text, case + export.to_json(captures[:1]))
    assert done.returncode == 0 and done.stderr == "" and "native" in done.stdout and done.stdout.count("n=4+4") == 2, done
    assert done.stdout == command(text, text).stdout
    assert parse_json(lines.encode(), "a")[1].records[1].values == captures[0].records[1].values
    assert command(text, lines).stderr == "new gone: verdict crash\n"
    done = command(text, export.to_json(captures[:1]).replace('"leaf": "4K/x"', '"leaf": []', 1) + '{"cut')
    assert done.stderr == "".join(f"new new:{line}: begins as a record and is not whole\n" for line in (3, 10)), done.stderr
    for nothing in ("a,b\n1,2\n", "{}", ""):
        done = command(text, nothing)
        assert done.returncode == 2 and "compare: new: no record in it" in done.stderr and not done.stdout
