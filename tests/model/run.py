#!/usr/bin/env python3
"""Checks the models in this folder with spin: the correct models exhaustively, and spin must find every planted bug (README.md).

For a correct model `ok` means that the search was complete and found no error, for a bug that spin found a counterexample. The folder of a
failed run is named; it contains the trail (spin -t -p model.pml).
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

HERE = Path(__file__).resolve().parent
MEGABYTES, SECONDS = 2000, 300
DEPTH = 100_000
LARGE = ("shootdown", "block", "pcp")


@dataclass(frozen=True)
class Run:
    model: str
    defines: tuple = ()
    cycles: bool = False  # look for cycles instead of safety: every cycle is an error
    note: str = ""
    long: bool = False  # millions of states: not with --quick

    @property
    def bug(self):
        return next((d for d in self.defines if d.startswith("BUG_")), "")

    @property
    def name(self):
        return ".".join((self.model, *(d.replace("=", "") for d in self.defines), *(("CYCLES",) if self.cycles else ())))


CORRECT = (
    Run("shootdown", note="3 CPUs, 2 initiators, sleeping or joining third", long=True),
    Run("shootdown", ("WAKEUPS=0",), cycles=True, note="no run is infinite", long=True),
    Run("block", note="on demand", long=True),
    Run("block", ("POOL=1",), note="on demand, metadata memory made of blocks"),
    Run("block", ("MAPPED", "OPERATIONS_1=2"), note="mapped", long=True),
    Run("block", ("MAPPED", "POOL=1", "OPERATIONS=2"), note="mapped, one frame for a table that two want"),
    Run("padata", note="two jobs after each other, two helpers"),
    Run("padata", ("JOBS=1",), cycles=True, note="no run is infinite"),
    Run("ap", note="two CPUs and one that has the second's ID; deadlines at any time"),
    Run("ap", ("HANG",), note="a CPU that hangs until it is given up"),
    Run("pcp", note="two owners, an isolator", long=True),
    Run("pcp", ("ASKERS=2", "OPERATIONS_1=0"), note="an owner, two that ask it", long=True),
    Run("pin", note="a touch against unmapping"),
    Run("pin", ("PROTECT",), note="a touch against taking writing away"),
    Run("isolate", note="two isolators, a section that closes and opens, a taker"),
    Run("idle", note="a CPU that looks, halts and is woken, and news that comes at any time"),
    Run("idle", cycles=True, note="no run is infinite"),
    Run("quiet", note="a quiet program that is interrupted and ends, two rounds, frames that wait", long=True),
    Run("quiet", ("VISITS=1",), cycles=True, note="no run is infinite", long=True),
)
# Words of a model in which some of its planted bugs show, or show soonest.
RANGED, JOINING, MAPPED = ("ONLY_RANGED",), ("ONLY_JOINING", "WAKEUPS=0"), ("MAPPED", "OPERATIONS=2")
ASKING = ("OPERATIONS=1", "ASKERS=2", "OPERATIONS_1=0")
WORDS = {
    "shootdown.BUG_WAKE_LOOKS_AT_FULL_ONLY": RANGED,
    "shootdown.BUG_RANGED_PUBLISHES": RANGED,
    "shootdown.BUG_RANGED_COMPLETES": RANGED,
    "shootdown.BUG_WAIT_WITHOUT_SERVING": RANGED,
    "shootdown.BUG_JOIN_LOADS_G_LATE": JOINING,
    "shootdown.BUG_JOIN_ONLINE_LATE": JOINING,
    "block.BUG_META_LEFT_WHILE_GATED": ("POOL=1",),
    "block.BUG_RESTORED_WITHOUT_ROUND": ("MAPPED", "OPERATIONS_1=2"),
    "block.BUG_LOSER_GOES_ON": MAPPED,
    "block.BUG_SPLIT_COUNTED_LATE": MAPPED,
    "block.BUG_LOOKS_AGAIN": ("MAPPED", "POOL=1", "OPERATIONS=2"),
    "block.BUG_SPLIT_SKIPS_IDLE": MAPPED,
    "block.BUG_SIZE_AND_FRAME_AT_ONCE": MAPPED,
    "pcp.BUG_WAITS_BEHIND_ITSELF": (),  # this bug needs two operations
    "pcp.BUG_TYPE_READ_EARLY": ASKING,
    "pcp.BUG_JOINS_WHAT_BEGAN_BEFORE": ASKING,
}


def planted_in(model):
    """Runs for each bug that a model can be made to have: one, or two if both variants of the model must show it."""
    text = (HERE / f"{model}.pml").read_text(encoding="utf-8")
    usual = ("OPERATIONS=1",) if model == "pcp" else ()
    for bug in dict.fromkeys(re.findall(r"^#.*\b(BUG_\w+)", text, re.M)):
        yield Run(model, (bug, *WORDS.get(f"{model}.{bug}", usual)))
        if model == "pin":
            yield Run(model, (bug, "PROTECT"))


BUGS = tuple(run for model in dict.fromkeys(run.model for run in CORRECT) for run in planted_in(model))


def command(folder, *argv):
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)


def search(run, folder):
    """Output of the verifier for one run; raises RuntimeError if there is none."""
    shutil.copy(HERE / f"{run.model}.pml", folder)
    made = command(folder, "spin", "-a", *(f"-D{d}" for d in run.defines), f"{run.model}.pml")
    if made.returncode != 0 or not (folder / "pan.c").exists():
        raise RuntimeError("spin: " + (made.stdout + made.stderr).strip())
    kind = ("-DNP", "-DNOFAIR") if run.cycles else ("-DSAFETY",)
    # Optimising more costs the compiler more than it saves the search: bugs are found, and small models searched, before it is done.
    whole = run.model in LARGE and not run.bug
    made = command(folder, "gcc", "-Og" if whole else "-O0", "-w", *kind, f"-DMEMLIM={MEGABYTES}", "-o", "pan", "pan.c")
    if made.returncode != 0:
        raise RuntimeError("gcc: " + made.stderr.strip()[-400:])
    table = f"-w{24 if whole else 20}"  # 8 bytes for each of 2^20 states, zeroed before the first; it grows when it is full
    return command(folder, "./pan", f"-m{DEPTH}", table, *(("-l",) if run.cycles else ())).stdout


def verdict(run, output):
    errors = re.search(r"errors: (\d+)", output)
    states = re.search(r"^\s*(\S+) states, stored", output, re.M)
    if not errors or not states:
        return False, "no result: " + output.strip()[-300:]
    found, count = int(errors[1]), int(float(states[1]))
    broken = re.search(r"^pan:1: (.*?)(?: \(at depth (\d+)\))?$", output, re.M)
    if run.bug:
        if found and broken:
            return True, f"found after {count} states, {broken[2]} steps"
        return False, f"NOT FOUND in {count} states"
    if found:
        return False, broken[1] if broken else "errors"
    for sign in ("Search not completed", "max search depth too small", "truncated"):
        if sign in output:
            return False, f"not exhaustive: {sign}"
    return True, f"no error, search complete, {count} states"


def attempt(run, build):
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix=f"{run.model}.", dir=build))
    try:
        ok, words = verdict(run, search(run, folder))
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as wrong:
        ok, words = False, str(wrong)
    return ok, words, folder, time.monotonic() - started


def main():
    parser = argparse.ArgumentParser(description="Check the models with spin.")
    parser.add_argument("--build", default="build/models")
    parser.add_argument("--select", default="*", help="only runs whose name matches")
    parser.add_argument("--quick", action="store_true", help="no search of millions of states, and one planted bug for each model")
    args = parser.parse_args()

    first = {run.model: run for run in reversed(BUGS)}
    runs = [run for run in CORRECT + BUGS if fnmatchcase(run.name, args.select)]
    if args.quick:
        runs = [run for run in runs if not run.long and (run in CORRECT or run is first[run.model])]
    if not runs:
        print("no run selected", file=sys.stderr)
        return 2
    Path(args.build).mkdir(parents=True, exist_ok=True)
    failed = 0
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    workers = ThreadPoolExecutor(max(1, min(os.cpu_count(), memory // (MEGABYTES << 20))))
    for run, (ok, words, folder, seconds) in zip(runs, workers.map(lambda run: attempt(run, args.build), runs)):
        failed += not ok
        note = f" ({run.note})" if run.note else ""
        print(f"{'ok' if ok else 'not ok'} {run.name}{note}: {words}, {seconds:.1f} s", flush=True)
        if ok:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            print(f"    kept: {folder}")
    print(f"{len(runs) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
