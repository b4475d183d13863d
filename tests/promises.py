#!/usr/bin/env python3
"""Prints what keeps a promise of tests/PROMISES.md: tests/promises.py [KEY ...]

A promise has a key, such as `frames.one-owner`; a word without a dot stands for its whole section. Its tests are the cases of the mutants
that name the key, and those that promises-also.txt adds.
"""

import re
import sys
from collections import namedtuple
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
Mutant = namedtuple("Mutant", "number promises cases build")


def promises():
    """[(key, text)], in the order of the page."""
    return re.findall(r"^- \[([^\]]+)\] (.+)$", (ROOT / "tests/PROMISES.md").read_text(encoding="utf-8"), re.M)


def mutant(path):
    header = path.read_text(encoding="utf-8").split("\nIn: ")[0]
    field = dict(re.findall(r"^([A-Z][a-z]+): (.+)$", header, re.M))
    cases = field["Case"].split(", ")
    if field["Build"] == "spin":  # tests/mutants/mutants.py requires that steps.txt notices the code half of these
        cases = ["model/" + case for case in cases] + ["test_steps.py::test_the_code_says_each_step"]
    cases += field["Search"].split(", ") if "Search" in field else []
    return Mutant(path.name.partition("-")[0], field["Promise"].split(", "), cases, field["Build"])


def mutants():
    return [mutant(path) for path in sorted((ROOT / "tests/mutants").glob("*.mutant"))]


def also():
    """[(key, test)]: tests that guard a promise and were not seen to fail."""
    lines = (ROOT / "tests/promises-also.txt").read_text(encoding="utf-8").splitlines()
    return [tuple(line.split("#")[0].split()) for line in lines if line and line[0] != "#"]


def main(keys):
    rows = [(key, text) for key, text in promises() if not keys or key in keys or key.split(".")[0] in keys]
    for key, text in rows:
        print(f"[{key}] {text}")
        for one in mutants():
            if key in one.promises:
                print(f"    {one.number:>3}  {', '.join(one.cases)}")
        for named, test in also():
            if named == key:
                print(f"   also  {test}")
    return 0 if rows else f"no promise has the key {' or '.join(keys)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
