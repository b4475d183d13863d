"""Words of make's command line that cannot be used are refused before anything is built, and those of the pages can be used."""

import re
import shlex
from pathlib import Path

import patience
import pytest
import texts
import typed
from machine import ROOT, without_make
from test_docs import PAGES, commands


MISTYPED = texts.rows(Path(__file__).with_name("mistyped.txt"), r"(\w.*)\n    (.*)")


@pytest.mark.parametrize("line, says", [(line, says.replace("\\n", "\n")) for line, says in MISTYPED])
def test_what_is_mistyped_is_refused(tmp_path, line, says):
    argv = ["make", *shlex.split(line), f"BUILD={tmp_path}/build"]
    done = patience.run(argv, 120, cwd=ROOT, env=without_make())
    assert done.returncode == 2 and says in done.stderr, done
    assert not done.stdout and not (tmp_path / "build").exists()


@pytest.mark.parametrize("pattern", ["*", "mm.hvo", "mm.*,kernel.words.*", "typed.*", "metal.usb_refuses[*", "host.sanitizers.address", ""])
def test_patterns_of_cases_and_of_tests(pattern):
    typed.CHECKS["test"]({"T": pattern})


def test_a_file_that_is_missing_is_told_the_nearest(tmp_path):
    (tmp_path / "old.console").touch()
    assert typed.missing(tmp_path / "odl.console").endswith(f"did you mean {tmp_path}/old.console?")
    for argv in (["tests/run", "--console"], ["tests/bench/compare", "VERSION"]):
        done = patience.run([*argv, "no/such"], 60, cwd=ROOT)
        assert done.returncode == 2 and done.stderr.endswith("there is no no/such\n"), done


def test_what_the_pages_show_can_be_used():
    goals, seen = set(re.findall(r"^([a-z][\w-]*):", typed.makefiles(), re.M)), 0
    for page in PAGES:
        for _, goal, *rest in map(shlex.split, commands(page, "make [a-z]")):
            assert goal in goals, f"{page.name}: make {goal}"
            given = dict(word.split("=", 1) for word in rest if "=" in word)
            goal = "/".join(filter(None, (goal, given.get("WHAT") if goal in ("test", "bench") else "")))
            typed.check_goal(goal)
            typed.check_typed(given)
            typed.CHECKS.get(goal, lambda values: None)({"T": ""} | given)
            seen += goal in typed.CHECKS and bool(given)
    assert seen > 20
