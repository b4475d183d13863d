"""Words of make's command line that cannot be used are refused before anything is built, and those of the pages can be used."""

import os
import re
import shlex

import patience
import pytest
import typed
from machine import ROOT
from test_docs import PAGES, commands


@pytest.mark.parametrize(
    "line, says",
    [
        ("run CPUS=0", "CPUS=0 cannot be used: CPUS is a whole number, 1 or more"),
        ("monitor MEM=0", "MEM=0 cannot be used: MEM is a size of 16M or more, such as 512M or 12G"),
        ("debug NODES=0", "NODES=0 cannot be used: NODES is a whole number, 1 to 128"),
        ("run FIRMWARE=bois", "FIRMWARE is one of bios, uefi, efi, pvh, microvm"),
        ("run ACCEL=kmv", "ACCEL is one of auto, kvm, tcg, icount, icount-0"),
        ("run CPU=4", "CPU is one of QEMU's models, such as max; CPUS is the number"),
        ("bench WHAT=compare FILES=old", "needs two to compare: FILES=OLD,NEW"),
        ("run TIMEOUT=soon", "TIMEOUT is a number of seconds, or 0"),
        ("test T=typo", "T: no case matches 'typo'; did you mean: "),
        ("test T='mm.hvo.*,mm.hov.*'", "T: no case matches 'mm.hov.*'; did you mean: mm.hvo.*, "),
        ("test WHAT=matrix T='test'\"'\"'s'", "T: no case matches 'test's'"),
        ("test WHAT=msan T='build.*'", "T: no case matches 'build.*'"),  # a test of these files, which runs nothing hosted
        ("test WHAT=machines T='cpu-EPIC'", "T: no row of boot/metal.md matches 'cpu-EPIC'; did you mean: cpu-EPYC, "),
        ("bench T=hvo,cleer", "T: no benchmark matches 'cleer'; did you mean: clear, "),
        ("bench WHAT=linux T=faults", "T: no table matches 'faults'; did you mean: fault, "),
        ("bench WHAT=programs T=larsen", "T: no program matches 'larsen'; did you mean: larson, "),
        ("test WHAT=matrx", "WHAT=matrx: make test has again, bare, "),
        ("run FIRMWRE=pvh", "FIRMWRE= is read by nobody; did you mean FIRMWARE=?"),
        ("bench WHAT=against FILES=HEAD~5 T=hov-2", "T: no benchmark matches 'hov-2'; did you mean: hvo-2, "),
        ("test-matrix", "make test-matrix is now: make test WHAT=matrix\n"),
        ("soak", "make soak is now: make test WHAT=soak\n"),
        ("bench-linux", "make bench-linux is now: make bench WHAT=linux\n"),
        ("rnu", "there is no make rnu; did you mean make run?"),
        ("build/x.o hots-asan cpus=4", "cpus= is read by nobody; did you mean CPUS=?"),
        ("build/x.o hots-asan CPUS=4", "there is no make hots-asan; did you mean make host-asan?"),
        ("explore T=mm.prvoke.x", "T: no case matches 'mm.prvoke.x'; did you mean: mm.provoke."),
        ("test WHAT=mutants T='1-no-brake*'", "T: no mutant matches '1-no-brake*'; did you mean: "),
    ],
)
def test_what_is_mistyped_is_refused(tmp_path, line, says):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "BUILD", "TOOLS"))}
    argv = ["make", *shlex.split(line), f"BUILD={tmp_path}/build"]
    done = patience.run(argv, 120, cwd=ROOT, env=environment)
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
