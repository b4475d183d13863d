"""What functions cost, counted by valgrind: programs that are run under it, and the profiles that callgrind writes.

A profile has the counts of each function's own instructions and of each call. With PROFILE among the words, each line of it says everything.
Format: "Callgrind Format Specification", in the manual of valgrind.
"""

import os
import re
import subprocess
from collections import defaultdict
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


def dumps_in(folder):
    """The texts of the profiles that a run wrote with --callgrind-out-file=FOLDER/out, in order."""
    paths = sorted(Path(folder).glob("out.*"), key=lambda path: int(path.suffix[1:]))
    return [path.read_text(encoding="utf-8", errors="replace") for path in paths]


def parse(text, locked=frozenset()):
    """{(function, file): {event: count}} of the instructions of each function, without those of functions that it calls. The event "locked"
    is that of instructions at these addresses."""
    events = re.search(r"^events: (.+)$", text, re.M)
    if not events or not re.search(r"^(?:summary|totals): ", text, re.M):
        raise Failed("callgrind wrote no whole profile")
    names, own, at, is_call = (*events[1].split(), "locked"), {}, defaultdict(str), False
    for line in text[events.end():].splitlines():
        key, _, value = line.partition("=")
        if key in ("fl", "fn"):
            at[key] = value
        elif key == "calls":
            is_call = True  # the next line has the costs of the callee
        elif is_call:
            is_call = False
        elif (costs := COSTS.fullmatch(line)) and at["fn"]:
            counts = [int(word) for word in costs[2].split()]
            counts += [0] * (len(names) - 1 - len(counts))  # trailing zeros are left out
            counts.append(counts[0] if int(costs[1], 16) in locked else 0)
            total = own.setdefault((at["fn"], at["fl"]), dict.fromkeys(names, 0))
            for name, count in zip(names, counts):
                total[name] += count
    return own


def source_of(path, known):
    """The path below the root of a source that a profile names, or "" if no such file is there. `known` remembers the answers."""
    if path not in known:
        parts = os.path.normpath(path).strip("/").split("/")
        below = ("/".join(parts[i:]) for i in range(len(parts)))
        known[path] = next((name for name in below if name and (ROOT / name).is_file()), "")
    return known[path]
