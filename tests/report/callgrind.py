"""What functions cost, counted by valgrind: programs that are run under it, and the profiles that callgrind writes.

A profile has, for each function, the counts of its own instructions and those of each function that it calls. With PROFILE among the words,
each line of it says everything. Format: "Callgrind Format Specification", in the manual of valgrind.
"""

import argparse
import os
import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Registers must be exact at every access to memory, because the handler of a page fault goes back to the instruction that faulted.
VALGRIND = "valgrind --px-default=allregs-at-mem-access --px-file-backed=allregs-at-mem-access --cache-sim=yes"
PROFILE = "--tool=callgrind --dump-instr=yes --dump-line=no --compress-pos=no --compress-strings=no"
COSTS = re.compile(r"(0x[0-9a-f]+)((?: \d+)*)")
# Places in the source of functions of ours, or of the inline functions with which they begin.
OURS = ("mm/", "kernel/", "arch/", "tests/host/include/")


class Failed(Exception):
    """The reason why there are no figures."""


def passed(argv, seconds, **more):
    """The console of a run of the kernel, which must pass."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=seconds, check=False, **more)
    except (OSError, subprocess.TimeoutExpired) as why:
        raise Failed(f"{argv[0]}: {why}") from why
    if "ASHLAR-END verdict=pass" not in done.stdout:
        raise Failed(f"{Path(argv[0]).name} did not pass: {(done.stdout + done.stderr)[-1500:]}")
    return done.stdout


def main(description, measure):
    """A program that is one leg of a report: measure(build) prints records, and returns whether they are as they should be."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", type=Path, default=Path("build"))
    try:
        passes = measure(parser.parse_args().build)
    except Failed as why:
        print(why)
        passes = False
    print("ASHLAR-END verdict=pass code=0x10" if passes else "ASHLAR-END verdict=fail code=0x11")
    return 0 if passes else 1


def dumps_in(folder):
    """The texts of the profiles that a run wrote with --callgrind-out-file=FOLDER/out, in order."""
    paths = sorted(Path(folder).glob("out.*"), key=lambda path: int(path.suffix[1:]))
    return [path.read_text(encoding="utf-8", errors="replace") for path in paths]


@dataclass
class Profile:
    """Functions are (name, file). The last event is "locked": instructions at the addresses that parse() was given."""

    events: tuple = ()
    own: dict = field(default_factory=dict)  # {function: counts}
    calls: dict = field(default_factory=dict)  # {(caller, callee): counts, all that the callee called included}

    def total(self, kept, outside):
        """
        {event: count} of the functions for which kept(function) holds, and of those that they call for which outside(function) does, such
        as memset(), with all that these call.
        """
        wanted = [counts for function, counts in self.own.items() if kept(function)]
        wanted += [counts for (caller, callee), counts in self.calls.items() if kept(caller) and outside(callee)]
        return dict(zip(self.events, map(sum, zip(*wanted)))) if wanted else dict.fromkeys(self.events, 0)


def add(table, key, counts):
    table[key] = [a + b for a, b in zip(table.get(key, [0] * len(counts)), counts)]


def parse(text, locked=frozenset()):
    events = re.search(r"^events: (.+)$", text, re.M)
    if not events or not re.search(r"^(?:summary|totals): ", text, re.M):
        raise Failed("callgrind wrote no whole profile")
    profile = Profile((*events[1].split(), "locked"))
    at, times = defaultdict(str), None
    for line in text[events.end():].splitlines():
        key, _, value = line.partition("=")
        if key in ("fl", "fn", "cfn"):
            at[key] = value
        elif key in ("cfi", "cfl"):
            at["callee's"] = value
        elif key == "calls":
            times = int(value.split()[0])
        elif (costs := COSTS.fullmatch(line)) and at["fn"]:
            counts = [int(word) for word in costs[2].split()]
            counts += [0] * (len(profile.events) - 1 - len(counts))  # trailing zeros are left out
            counts.append(counts[0] if int(costs[1], 16) in locked else 0)
            function = at["fn"], at["fl"]
            if times is None:
                add(profile.own, function, counts)
            elif times > 0:  # a call that began before the dump is one of its callers, and stands with 0
                add(profile.calls, (function, (at["cfn"], at.pop("callee's", at["fl"]))), counts)
            times = None
    return profile


def source_of(path, known):
    """The path below the root of a source that a profile names, or "" if no such file is there. `known` remembers the answers."""
    if path not in known:
        parts = os.path.normpath(path).strip("/").split("/")
        below = ("/".join(parts[i:]) for i in range(len(parts)))
        known[path] = next((name for name in below if name and (ROOT / name).is_file()), "")
    return known[path]
