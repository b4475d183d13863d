#!/usr/bin/env python3
"""Checks the words of make's command line before anything is built: typed.py GOAL... -- KEY=VALUE... -- KEY=TYPED...

Names of cases, machines and benchmarks are read from the sources, and those of variables and of the goals test/WHAT from the Makefile. A wrong
word is named with what is allowed in its place, or with the names that are nearest to it, and the exit status is 2.
"""

import difflib
import functools
import itertools
import math
import operator
import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path

from machine import FIRMWARES, ROOT, parse_size
from matrix import MODELS, MODELS_OF_QEMU_10

sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/report")]

LEAST_MEM = "16M"  # with less, the kernel cannot even say that it is too little
NODES_MOST = 128  # of QEMU
NEAREST = 3


class Wrong(Exception):
    """A word that cannot be used; the text says why."""


# ---- the machine of make run --------------------------------------------------------------------------------------


def is_whole(value, most=math.inf):
    return re.fullmatch(r"[0-9]+", value) and 1 <= int(value) <= most


def is_size(value):
    return re.fullmatch(r"(?i)[0-9]+[KMGT]?(i?B)?", value) and parse_size(value) >= parse_size(LEAST_MEM)


def one_of(*names):
    return names.__contains__, f"one of {', '.join(names)}"


MACHINE = {
    "CPUS": (is_whole, "a whole number, 1 or more"),
    "CPU": (lambda value: not value.isdigit(), "one of QEMU's models, such as max; CPUS is the number of CPUs"),
    "MEM": (is_size, f"a size of {LEAST_MEM} or more, such as 512M or 12G"),
    "NODES": (lambda value: is_whole(value, NODES_MOST), f"a whole number, 1 to {NODES_MOST}"),
    "FIRMWARE": one_of(*FIRMWARES),
    "ACCEL": one_of("auto", "kvm", "tcg", "icount", *(f"icount-{shift}" for shift in range(8))),
    "TIMEOUT": (lambda value: re.fullmatch(r"[0-9]+(\.[0-9]+)?", value), "a number of seconds, or 0 for no limit"),
}


def check_machine(values):
    for key, (fits, allowed) in MACHINE.items():
        if key in values and not fits(values[key]):
            raise Wrong(f"{key}={values[key]} cannot be used: {key} is {allowed}")


# ---- names ---------------------------------------------------------------------------------------------------------


@functools.cache
def case_names():
    folders = ("tests/kernel", "tests/host", "tests/host/explore")
    texts = (path.read_text(encoding="utf-8") for folder in folders for path in (ROOT / folder).glob("*.c"))
    return {f"{suite.replace('_', '.', 1)}.{name}" for text in texts for suite, name in re.findall(r"^TEST\w*\((\w+),\s+(\w+)[,)]", text, re.M)}


def functions_of(path):
    return re.findall(r"^def test_(\w+)\(", path.read_text(encoding="utf-8"), re.M)


def test_names():
    """The tests of these files, as conftest.py names them, without their parameters."""
    paths = (ROOT / "tests/qemu").glob("test_*.py")
    return {f"{path.stem.removeprefix('test_')}.{name}" for path in paths for name in functions_of(path)}


def machine_names():
    path = ROOT / "tests/qemu/test_machines.py"
    text = path.read_text(encoding="utf-8")
    metal = re.findall(r"@pytest.mark.metal\n(?:@.*\n)?def test_(\w+)", (path.parent / "test_efi.py").read_text(encoding="utf-8"))
    models = (model.replace(",", "").replace("=", "-") for model in (*MODELS, *MODELS_OF_QEMU_10))
    return {*re.findall(r'\bRow\("([^"]+)"', text), *(f"cpu-{model}" for model in models), *functions_of(path), *metal} - {"row"}


def nearest(word, names, most=NEAREST):
    return ", ".join(difflib.get_close_matches(word, sorted(names), most, 0))


def unmatched(kind, word, names):
    """What to say of a word that matches none of the names."""
    return f"no {kind} matches '{word}'; did you mean: {nearest(word, names)}"


def missing(path):
    """What to say of a file that is not there."""
    path = Path(path)
    near = difflib.get_close_matches(path.name, [other.name for other in path.parent.glob("*")], 1)
    return f"there is no {path}" + (f"; did you mean {path.with_name(near[0])}?" if near else "")


def check_names(kind, names, separator=",", matches=fnmatchcase):
    """A check of T: each word, a name or a pattern, matches one of the names. [ begins the parameters of a test."""

    def check(values):
        for word in filter(None, values.get("T", "").split(separator)):
            if not any(matches(name, word.partition("[")[0] + "*" * ("[" in word)) for name in names()):
                raise Wrong(f"T: {unmatched(kind, word, names())}")

    return check


def is_of_suite(name, pattern):
    """Patterns match the name of a case or of its suite (tests/kernel/test.c). The suite SUITE is suggested as SUITE.*"""
    return fnmatchcase(name, pattern) or fnmatchcase(name.removesuffix(".*"), pattern)


def cases():
    return case_names() | {name.rpartition(".")[0] + ".*" for name in case_names()}


def benchmarks():
    from legs import LEGS, ON_REQUEST, group_of

    return {name for leg in LEGS + ON_REQUEST for name in (leg.name, group_of(leg))}


def tables_of_linux():
    from bench_linux import TABLES

    return {table.rsplit("-", n)[0] for table in TABLES for n in range(table.count("-") + 1)}


def programs():
    from bench_programs import OTHERS, own_names

    return {*own_names(), *OTHERS}


def mutants():
    return {path.stem for path in (ROOT / "tests/mutants").glob("*.mutant")}


def harnesses():
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "tests/prove").glob("*.c"))
    return {name for text in texts for name in re.findall(r"^PROVE\((\w+),", text, re.M)}


def proofs():
    from proof import ROWS

    return {row.name for row in ROWS}


NO_SEPARATOR = "\n"
CHECKS = {
    **dict.fromkeys(("run", "monitor", "debug"), check_machine),
    **dict.fromkeys(("test", "test/matrix", "test/huge"), check_names("case", lambda: cases() | test_names(), matches=is_of_suite)),
    **dict.fromkeys(("test/msan", "explore", "test/explore", "test/fences"), check_names("case", cases, matches=is_of_suite)),
    "test/mutants": check_names("mutant", mutants, NO_SEPARATOR),
    "test/proof": check_names("row", proofs),
    "test/prove": check_names("harness", harnesses),
    "test/machines": check_names("row of boot/metal.md", machine_names, NO_SEPARATOR),
    **dict.fromkeys(("bench", "bench/against"), check_names("benchmark", benchmarks, matches=operator.eq)),
    "bench/linux": check_names("table", tables_of_linux, matches=operator.eq),
    "bench/programs": check_names("program", programs, matches=operator.eq),
}

# ---- goals and variables -------------------------------------------------------------------------------------------

MAKEFILES = ("Makefile", "tests/host/host.mk", "tests/model/model.mk")
# Variables that make help does not list: where things lie, and tools.
UNLISTED = {"TOOLS", "YES", "CI", "CXX", "LD", "NM", "AR", "HOST_CC", "MAKEFLAGS"}


def makefiles():
    return "".join((ROOT / name).read_text(encoding="utf-8") for name in MAKEFILES)


def variables():
    return {*re.findall(r"^#: ([A-Z_]+) ", makefiles(), re.M)}


def goals():
    """The goals of make help: what stands before a colon, without file names."""
    return {name for names in re.findall(r"^([a-z][a-z0-9 -]*):(?!=)", makefiles(), re.M) for name in names.split()}


def whats(goal):
    """What WHAT= of that goal may be."""
    return {*re.findall(rf"^{goal}/([\w-]+):", makefiles(), re.M)} - {"all"}


def check_goal(goal):
    first, _, what = goal.partition("/")
    if what and first in ("test", "bench"):
        if what not in whats(first) | {"all"}:
            near = nearest(what, whats(first), 1)
            raise Wrong(f"WHAT={what}: make {first} has {', '.join(sorted(whats(first)))}; did you mean {near}?")
    elif not what and "." not in goal and goal not in goals() and not (ROOT / goal).exists():
        for of in ("test", "bench"):
            if goal.removeprefix(f"{of}-") in whats(of):
                raise Wrong(f"make {goal} is now: make {of} WHAT={goal.removeprefix(f'{of}-')}")
        raise Wrong(f"there is no make {goal}; did you mean make {nearest(goal, goals(), 1)}? make help lists all")


def check_typed(names):
    for name in names:
        if name in variables() | UNLISTED:
            continue
        raise Wrong(f"{name}= is read by nobody; did you mean {nearest(name.upper(), variables(), 1)}=?")


def main():
    parts = [list(part) for is_end, part in itertools.groupby(sys.argv[1:], "--".__eq__) if not is_end]
    goals, words, typed = (parts + [[], []])[:3]
    values = dict(word.split("=", 1) for word in words)
    try:
        check_typed([word.split("=", 1)[0].rstrip(":+?!") for word in typed])
        for goal in goals:
            check_goal(goal)
            CHECKS.get(goal, lambda values: None)(values)
    except Wrong as why:
        print(why, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
