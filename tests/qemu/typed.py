#!/usr/bin/env python3
"""Checks the words of make's command line before anything is built: typed.py GOAL... -- KEY=VALUE...

Names of cases, machines and benchmarks are read from the sources. A wrong word is named with what is allowed in its place, or with the names
that are nearest to it, and the exit status is 2.
"""

import ast
import difflib
import functools
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
    """All TEST()s of the tree, as the runner names them."""
    texts = (path.read_text(encoding="utf-8") for folder in ("tests/kernel", "tests/host") for path in (ROOT / folder).glob("*.c"))
    return {f"{suite.replace('_', '.', 1)}.{name}" for text in texts for suite, name in re.findall(r"^TEST\w*\((\w+),\s+(\w+)\)", text, re.M)}


def functions_of(path):
    """The names of a file's tests."""
    names = (node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef))
    return [name.removeprefix("test_") for name in names if name.startswith("test_")]


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


def check_bench(values):
    from legs import LEGS, ON_REQUEST, group_of

    check_names("BENCH", values["BENCH"].split(","), "benchmark", {group_of(leg) for leg in LEGS + ON_REQUEST}, operator.eq)


def check_sweep(values):
    import sweep

    try:
        for leg, _ in sweep.legs_of(values.get("BENCH", ""), [f"{key}={value}" for key, value in values.items()]):
            check_machine({key: str(getattr(leg, name)) for key, name in sweep.MACHINE.items()})
    except (sweep.Wrong, ValueError) as why:
        raise Wrong(f"make sweep: {why}") from why


def check_bench_linux(values):
    from bench_linux import TABLES

    parts = {table.rsplit("-", n)[0] for table in TABLES for n in range(table.count("-") + 1)}
    check_names("BENCH", values["BENCH"].split(","), "table", parts, operator.eq)


def check_bench_programs(values):
    from bench_programs import OTHERS, own_names

    check_names("BENCH", values["BENCH"].split(","), "program", {*own_names(), *OTHERS}, operator.eq)


CHECKS = {
    **dict.fromkeys(("run", "monitor", "debug"), check_machine),
    **dict.fromkeys(("test", "test-matrix", "test-huge"), lambda values: check_cases(values, test_names())),
    "test-msan": check_cases,
    "test-machines": lambda values: check_names("M", [values["M"]], "row of boot/metal.md", machine_names()),
    "bench": check_bench,
    "bench-linux": check_bench_linux,
    "bench-programs": check_bench_programs,
    "sweep": check_sweep,
}


def main():
    at = sys.argv.index("--")
    values = dict(word.split("=", 1) for word in sys.argv[at + 1 :])
    try:
        for goal in sys.argv[1:at]:
            CHECKS.get(goal, lambda values: None)(values)
    except Wrong as why:
        print(why, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
