#!/usr/bin/env python3
"""`make help-options`: all words of the kernel's command line, each with its default, its values, what it does and a test that uses it.

The kernel prints the list (`help options` in the monitor); the tests are found in the sources.
"""

import argparse
import re
import sys
from pathlib import Path

from guest import run
from machine import ROOT, Machine

SECONDS = 60
COMMAND = "help options"
FOLDERS = {"tests/kernel": "*_test.c", "tests/host": "*_test.c", "tests/qemu": "*.py", "tests/report": "*.py", "tests": "*.sh"}


def sources():
    return {path: path.read_text(encoding="utf-8") for folder, files in FOLDERS.items() for path in sorted((ROOT / folder).glob(files))}


def patterns(name):
    """How a test gives a value to the option: name=, "name", or as a word of its benchmark or of the monitor's `test`."""
    yield rf"""(?<![\w.]){re.escape(name)}(=|["'])"""
    kind, _, rest = name.partition(".")
    bench, _, word = rest.partition(".")
    if kind == "bench":
        yield rf"\b{bench}\b[^\n;]* {word}="
    elif kind == "test":
        yield rf"test [^\n;]*\b{rest}="
    if name == "monitor":
        yield r"\bmonitor\b"


def user_of(name, texts):
    for pattern in patterns(name):
        for path, text in texts.items():
            if re.search(pattern, text):
                return path.name
    return ""


def rows_of(kernel):
    """Name, default and what else the kernel says of each option."""
    outcome = run(Machine("pvh", 1, "128M", cmdline=f'run="{COMMAND}"'), kernel, SECONDS)
    console = outcome.text.replace(COMMAND, "-")  # the value of run= in this run
    return re.findall(r"(?m)^  ([a-z][\w.]*) +(\S+) +((?:\(boot\) )?\S.*: .*?)\r?$", console)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True)
    rows, texts = rows_of(parser.parse_args().build / "ashlar.elf"), sources()
    for name, default, says in rows:
        if not name.startswith("selftest"):
            print(f"{name:<26} {default:<10} {user_of(name, texts) or '-':<22} {says}")
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
