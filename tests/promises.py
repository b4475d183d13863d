#!/usr/bin/env python3
"""Prints what keeps a promise of tests/PROMISES.md: tests/promises.py [KEY ...]

A promise has a key, such as `frames.one-owner`; a word without a dot stands for its whole section. Its tests are the cases of the mutants
that name the key, and those that promises-also.txt adds.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/mutants"))

from mutants import every_mutant  # noqa: E402


def promises():
    return re.findall(r"^- \[([^\]]+)\] (.+)$", (ROOT / "tests/PROMISES.md").read_text(encoding="utf-8"), re.M)


def also():
    """[(key, test)]: tests that guard a promise and were not seen to fail."""
    lines = (ROOT / "tests/promises-also.txt").read_text(encoding="utf-8").splitlines()
    return [tuple(line.split("#")[0].split()) for line in lines if line and line[0] != "#"]


def main(keys):
    rows = [(key, text) for key, text in promises() if not keys or key in keys or key.split(".")[0] in keys]
    for key, text in rows:
        print(f"[{key}] {text}")
        for one in every_mutant():
            if key in one.promises:
                print(f"    {one.number:>3}  {', '.join(one.tests)}")
        for named, test in also():
            if named == key:
                print(f"   also  {test}")
    return 0 if rows else f"no promise has the key {' or '.join(keys)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
