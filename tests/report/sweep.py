#!/usr/bin/env python3
"""`make bench WHAT=sweep KEY=a,b,c T=name` runs one benchmark with one switch varied, and reports time against the switch.

The words come from make's command line. The word whose value has commas is varied. CPUS, MEM, NODES, FIRMWARE and ACCEL describe the
machine. All other words are words of the benchmark, or of the kernel's command line, and hold for every run:

    make bench WHAT=sweep CPUS=2,8,32 T=hvo
    make bench WHAT=sweep pages=256,1024,4096 T=hvo CPUS=8 runs=5

The consoles and the report are in BUILD/bench/sweep.
"""

import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

from legs import LEGS, arguments, bench

ROOT = Path(__file__).resolve().parents[2]
MACHINE = {"CPUS": "cpus", "MEM": "mem", "NODES": "nodes", "FIRMWARE": "firmware", "ACCEL": "accel"}
OURS = {"WHAT", "T", "BUILD", "TOOLS", "YES", "CI", "CC"}
VALUES_MAX = 32


class Wrong(Exception):
    """The words that were typed make no sweep; the text says why."""


def split(words):
    """(key, values, {machine's key: value}, [switches that stay])."""
    varied, machine, fixed = [], {}, []
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key in OURS:
            continue
        if "," in value:
            varied.append((key, [v for v in value.split(",") if v]))
        elif key in MACHINE:
            machine[key] = value
        elif key.islower():
            fixed.append(word)
        else:
            raise Wrong(f"{key} is not for a sweep")
    if len(varied) != 1:
        raise Wrong(f"one switch with commas is needed, e.g. CPUS=2,8,32; there are {len(varied)}")
    key, values = varied[0]
    if key not in MACHINE and not re.fullmatch(r"[a-z][a-z0-9_.]*", key) or not 1 < len(values) <= VALUES_MAX:
        raise Wrong(f"{key} with {len(values)} values is not for a sweep")
    return key, values, machine, fixed


def on_machine(leg, key, value):
    """The same leg on another machine."""
    return replace(leg, **{MACHINE[key]: int(value) if key in ("CPUS", "NODES") else value})


def with_words(leg, words):
    """The same leg with the benchmark's and the kernel's words instead of those that have the same names."""
    bench, *words = [*leg_words(leg), *words]
    own = own_words(bench)
    by_name = {word.partition("=")[0]: word for word in words}
    inside = " ".join([bench, *(word for name, word in by_name.items() if name in own)])
    outside = (word for name, word in by_name.items() if name not in own)
    return replace(leg, cmdline=" ".join([f'bench="{inside}"' if " " in inside else f"bench={bench}", *outside]))


def leg_words(leg):
    """The name of the leg's benchmark, then all other words."""
    first, *others = shlex.split(leg.cmdline)
    return [*first.removeprefix("bench=").split(), *others]


def own_words(bench):
    """The words that belong to this benchmark, as the sources declare them."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "tests/bench").rglob("*.c"))
    return {word for text in texts for word in re.findall(rf"\bOPTION\w*\(\s*bench\.{bench}\.(\w+)", text)}


def legs_of(name, words):
    """The legs of the sweep: like the first leg of `make bench` with this benchmark, except for the words that were typed."""
    key, values, machine, fixed = split(words)
    first = {leg.name.partition("-")[0]: leg for leg in reversed(LEGS)}
    if name not in first:
        raise Wrong(f"T={name}: one of {', '.join(sorted(first))} is needed")
    leg = with_words(replace(first[name], seconds=600), fixed)
    for known, value in machine.items():
        leg = on_machine(leg, known, value)
    for value in values:
        one = on_machine(leg, key, value) if key in MACHINE else with_words(leg, [f"{key}={value}"])
        yield replace(one, name=f"{name}-{key}-{value}", sweep=f"{key}={value}")


def main():
    """What follows -- are make's words, of which split() takes its own."""
    at = sys.argv.index("--")
    words, sys.argv[at:] = sys.argv[at + 1 :], []
    args = arguments("Run a benchmark with one switch varied.")
    try:
        legs = list(legs_of(",".join(args.only), words))
    except (Wrong, ValueError) as why:
        print(f"make bench WHAT=sweep: {why}", file=sys.stderr)
        return 2
    return bench(legs, args.build, ["*.console"], "bench/sweep")


if __name__ == "__main__":
    sys.exit(main())
