#!/usr/bin/env python3
"""Checks the words of make's command line before anything is built: typed.py GOAL... -- KEY=VALUE... -- KEY=TYPED...

Names of cases, machines and benchmarks are read from the sources, and those of variables and of the goals test/WHAT from the Makefile. A wrong
word is named with what is allowed in its place, or with the names that are nearest to it, and the exit status is 2.
"""

import difflib
import functools
import itertools
import operator
import re
import sys
from fnmatch import fnmatchcase

from machine import FIRMWARES, ROOT, parse_size

sys.path[:0] = [str(ROOT / "tests/report")]

LEAST_MEM = "16M"  # with less, the kernel cannot even say that it is too little
NODES_MOST = 128  # of QEMU
NEAREST = 3


class Wrong(Exception):
    """A word that cannot be used; the text says why."""


# ---- the machine of make run --------------------------------------------------------------------------------------


def whole(least, most=None):
    """A check for whole numbers, and what to say of those that it allows."""
    fits = lambda value: re.fullmatch(r"[0-9]+", value) and least <= int(value) <= (most or int(value))  # noqa: E731
    return fits, f"a whole number, {least} " + (f"to {most}" if most else "or more")


def is_size(value):
    return re.fullmatch(r"(?i)[0-9]+[KMGT]?(i?B)?", value) and parse_size(value) >= parse_size(LEAST_MEM)


def one_of(*names):
    return names.__contains__, f"one of {', '.join(names)}"


MACHINE = {
    "CPUS": whole(1),
    "MEM": (is_size, f"a size of {LEAST_MEM} or more, such as 512M or 12G"),
    "NODES": whole(1, NODES_MOST),
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
    models = (model.replace(",", "").replace("=", "-") for model in re.findall(r'\bcpu_row\("([^"]+)"', text))
    return {*re.findall(r'\bRow\("([^"]+)"', text), *(f"cpu-{model}" for model in models), *functions_of(path)} - {"row"}


def check_names(key, words, kind, names, matches=fnmatchcase):
    """Each word, a name or a pattern, matches one of the names. [ begins the parameters of a test."""
    for word in filter(None, words):
        if not any(matches(name, word.partition("[")[0] + "*" * ("[" in word)) for name in names):
            near = difflib.get_close_matches(word, sorted(names), NEAREST, 0)
            raise Wrong(f"{key}: no {kind} matches '{word}'; did you mean: {', '.join(near)}")


def check_cases(values, others=frozenset()):
    """Patterns match the name of a case or of its suite (kernel/run/test.c). The suite SUITE is suggested as SUITE.*"""
    suites = {name.rpartition(".")[0] + ".*" for name in case_names()}
    matches = lambda name, pattern: fnmatchcase(name, pattern) or fnmatchcase(name.removesuffix(".*"), pattern)  # noqa: E731
    check_names("T", values.get("T", "").split(","), "case", case_names() | suites | others, matches)


def benchmarks():
    from legs import LEGS, ON_REQUEST, group_of

    return {name for leg in LEGS + ON_REQUEST for name in (leg.name, group_of(leg))}


def tables_of_linux():
    from bench_linux import TABLES

    return {table.rsplit("-", n)[0] for table in TABLES for n in range(table.count("-") + 1)}


def programs():
    from bench_programs import OTHERS, own_names

    return {*own_names(), *OTHERS}


def check_list(kind, names):
    return lambda values: check_names("T", values["T"].split(","), kind, names(), operator.eq)


CHECKS = {
    **dict.fromkeys(("run", "monitor", "debug"), check_machine),
    **dict.fromkeys(("test", "test/matrix", "test/huge"), lambda values: check_cases(values, test_names())),
    "test/msan": check_cases,
    "test/machines": lambda values: check_names("T", [values["T"]], "row of boot/metal.md", machine_names()),
    **dict.fromkeys(("bench", "bench/against"), check_list("benchmark", benchmarks)),
    "bench/linux": check_list("table", tables_of_linux),
    "bench/programs": check_list("program", programs),
}

# ---- goals and variables -------------------------------------------------------------------------------------------

MAKEFILES = ("Makefile", "tests/host/host.mk", "tests/model/model.mk")
# Variables that make help does not list: where things lie, and tools.
UNLISTED = {"TOOLS", "COV", "YES", "CI", "CXX", "LD", "NM", "AR", "HOST_CC", "MAKEFLAGS"}
# Variables of old, and what replaces them.
OLD = {
    "SAN": "DEBUG=san", "BENCH": "T", "M": "T", "SHARD": "T", "DIR": "FILES", "ARGS": "PROGRAM='./a.out ARGUMENTS'",
    "ENV": "PROGRAM='NAME=value ./a.out'", "BALLOON": "CMDLINE=balloon=on, which suffices", "HOURS": "N", "SOAK": "N", "CALLS": "N",
    "COMPARE": "WHAT=compare FILES=OLD,NEW", "AGAINST": "WHAT=against FILES=REVISION",
    "FUZZ_SECONDS": "N", "HOSTED": "DEBUG=1", "EXPLORE": "SEED", "QEMU": "a qemu-system-x86_64 that PATH finds first",
}  # fmt: skip


def makefiles():
    return "".join((ROOT / name).read_text(encoding="utf-8") for name in MAKEFILES)


def variables():
    return {*re.findall(r"^#: ([A-Z]+) ", makefiles(), re.M)}


def check_goal(goal):
    first, _, what = goal.partition("/")
    names = {*re.findall(rf"^{first}/([\w-]+):", makefiles(), re.M)}
    if goal == "bench/sweep":
        raise Wrong("make bench WHAT=sweep is now: make run for each value, and tests/bench/report with the consoles")
    if what and what not in names:
        near = difflib.get_close_matches(what, sorted(names), 1, 0)[0]
        raise Wrong(f"WHAT={what}: make {first} has {', '.join(sorted(names - {'all'}))}; did you mean {near}?")


def check_typed(names):
    for name in names:
        if name in variables() | UNLISTED:
            continue
        if name in OLD:
            raise Wrong(f"{name}= is now {OLD[name]}")
        near = difflib.get_close_matches(name, sorted(variables()), 1, 0)[0]
        raise Wrong(f"{name}= is read by nobody; did you mean {near}=?")


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
