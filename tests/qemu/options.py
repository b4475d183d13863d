#!/usr/bin/env python3
"""`make help-options`: all words of the kernel's command line, each with its default, its values, what it does and a test that uses it.

The kernel prints the list (`help options` in the monitor); the tests are found in the sources.
"""

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from guest import run
from machine import ROOT, Machine

SECONDS = 60
COMMAND = "help options"
FOLDERS = {"tests/kernel": "*_test.c", "tests/host": "*_test.c", "tests/qemu": "*.py", "tests/report": "*.py", "tests": "*.sh"}


@dataclass(frozen=True)
class Option:
    name: str
    default: str
    says: str  # "VALUES: help"


def options_of(console):
    console = console.replace(COMMAND, "-")  # the value of run= in this run
    return [Option(*found) for found in re.findall(r"(?m)^  ([a-z][\w.]*) +(\S+) +((?:\(boot\) )?\S.*: .*?)\r?$", console)]


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


def listed(kernel):
    outcome = run(Machine("pvh", 1, "128M", cmdline=f'run="{COMMAND}"'), kernel, SECONDS)
    texts = sources()
    return [(o, user_of(o.name, texts)) for o in options_of(outcome.text) if not o.name.startswith("selftest")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True)
    rows = listed(parser.parse_args().build / "ashlar.elf")
    for option, user in rows:
        print(f"{option.name:<26} {option.default:<10} {user or '-':<22} {option.says}")
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
