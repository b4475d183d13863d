#!/usr/bin/env python3
"""Checks the models in this folder with spin: the correct models exhaustively, and spin must find every planted bug.

    run.py [--build folder] [--select glob] [--quick] [--keep]

A run is one line. For a correct model `ok` means that the search was complete and found no error; the number of states is printed. For a
bug `ok` means that spin found a counterexample, whose length is printed. Exit status: 0 if all are ok, 1 if one is not, 2 for wrong use.
With --keep the folder of a failed run is named; it contains the trail (spin -t -p model.pml).
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


def shootdown(bug, *defines):
    return Run("shootdown", (f"BUG_{bug}", *defines))


def block(bug, *defines):
    return Run("block", (f"BUG_{bug}", *defines))


def padata(bug, *defines):
    return Run("padata", (f"BUG_{bug}", *defines))


def ap(bug, *defines):
    return Run("ap", (f"BUG_{bug}", *defines))


def pcp(bug, *defines):
    return Run("pcp", (f"BUG_{bug}", "OPERATIONS=1", *defines))


def pin(bug, *defines):
    return Run("pin", (f"BUG_{bug}", *defines))


def isolate(bug, *defines):
    return Run("isolate", (f"BUG_{bug}", *defines))


def idle(bug, *defines):
    return Run("idle", (f"BUG_{bug}", *defines))


def quiet(bug, *defines):
    return Run("quiet", (f"BUG_{bug}", *defines))


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
BUGS = (
    shootdown("NO_FENCE"),
    shootdown("TAG_EARLY"),
    shootdown("GATE_IGNORED"),
    shootdown("LOAD_AFTER_FLUSH"),
    shootdown("DONE_BEFORE_ACK"),
    shootdown("IDLE_READ_EARLY"),
    shootdown("IDLE_SET_EARLY"),
    shootdown("NO_FLUSH_ON_WAKE"),
    shootdown("NO_FENCE_ON_WAKE"),
    shootdown("WAKE_LOOKS_AT_FULL_ONLY", "ONLY_RANGED"),
    shootdown("RANGED_PUBLISHES", "ONLY_RANGED"),
    shootdown("RANGED_COMPLETES", "ONLY_RANGED"),
    shootdown("WAIT_WITHOUT_SERVING", "ONLY_RANGED"),
    shootdown("JOINS_TOO_EARLY"),
    shootdown("CLAIM_KEPT"),
    shootdown("JOIN_LOADS_G_LATE", "ONLY_JOINING", "WAKEUPS=0"),
    shootdown("JOIN_ONLINE_LATE", "ONLY_JOINING", "WAKEUPS=0"),
    block("TAIL_WRITABLE"),
    block("BARE_WITHOUT_ROUND"),
    block("PUBLISHED_BEFORE_ROUND"),
    block("HEAD_MOVES"),
    block("GIVEN_BEFORE_ROUND"),
    block("GATE_IGNORED"),
    block("FREED_UNGATED"),
    block("TAG_OF_LAST_ROUND"),
    block("CLOSE_WITHOUT_ROUND"),
    block("SKIP_IDLE_WHEN_TABLE_FREED"),
    block("META_LEFT_WHILE_GATED", "POOL=1"),
    block("RESTORED_WITHOUT_ROUND", "MAPPED", "OPERATIONS_1=2"),
    block("LOSER_GOES_ON", "MAPPED", "OPERATIONS=2"),
    block("SPLIT_COUNTED_LATE", "MAPPED", "OPERATIONS=2"),
    block("LOOKS_AGAIN", "MAPPED", "POOL=1", "OPERATIONS=2"),
    block("SPLIT_SKIPS_IDLE", "MAPPED", "OPERATIONS=2"),
    block("SIZE_AND_FRAME_AT_ONCE", "MAPPED", "OPERATIONS=2"),
    padata("CURSOR_NOT_ATOMIC"),
    padata("OTHERS_SHARES_LEFT"),
    padata("COUNTED_WITHOUT_LOCK"),
    padata("LEFT_BEFORE_COUNTED"),
    padata("CLAIM_ENDS_FIRST"),
    padata("NO_FENCE_BEFORE_MESSAGE"),
    padata("HALT_WITHOUT_A_LOOK"),
    padata("NOT_WAITED_FOR"),
    ap("STAGE_STORED"),
    ap("CLAIM_NOT_ATOMIC"),
    ap("JOINS_UNANNOUNCED"),
    ap("GIVES_UP_WHO_JOINS"),
    ap("GIVEN_UP_BY_STORE"),
    ap("NOT_SEEN_THROUGH"),
    ap("STACK_GIVEN_BACK"),
    ap("ASKED_BEFORE_PREPARED"),
    pcp("DRAINED_WHILE_INSIDE"),
    Run("pcp", ("BUG_WAITS_BEHIND_ITSELF",)),  # this bug needs two operations
    pcp("LATE_COUNTS_AS_DRAINED"),
    pcp("TYPE_READ_OUTSIDE"),
    pcp("HOLDS_UNFENCED"),
    pcp("HIGH_SURVIVES"),
    pcp("SAID_BEFORE_DRAINED"),
    pcp("ASKED_ONCE"),
    pcp("DRAINED_BEFORE_ISOLATED"),
    pcp("COUNT_RAISED_LATE"),
    pcp("TYPE_READ_EARLY", "ASKERS=2", "OPERATIONS_1=0"),
    pcp("JOINS_WHAT_BEGAN_BEFORE", "ASKERS=2", "OPERATIONS_1=0"),
    pin("PINNED_WITHOUT_FENCE"),
    pin("NOT_LOOKED_AGAIN"),
    pin("EMPTIED_WITHOUT_FENCE"),
    pin("NOT_WAITED_UNPINNED"),
    pin("RIGHTS_READ_EARLY", "PROTECT"),
    pin("RIGHTS_WITHOUT_FENCE", "PROTECT"),
    isolate("TOKEN_AFTER_THE_BITS"),
    isolate("OVERLAP_UNCHECKED"),
    isolate("ISOLATES_WHAT_CLOSES"),
    isolate("CLOSED_UNDER_A_TOKEN"),
    isolate("UNDONE_AFTER_TAKING"),
    idle("NO_SECOND_LOOK"),
    idle("NO_FENCE_WHEN_IDLE"),
    idle("IDLE_READ_BEFORE_NEWS"),
    idle("NEWS_READ_LATE"),
    quiet("NO_FENCE"),
    quiet("NO_FLUSH"),
    quiet("INTERRUPTS_ON"),
    quiet("SET_LATE"),
    quiet("LEFT_EARLY"),
    quiet("QUIET_READ_EARLY"),
    quiet("DONE_READ_LATE"),
    quiet("FRAMES_NOT_HELD"),
    quiet("NOT_ASKED"),
    quiet("NOT_WAITED_FOR"),
)


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


def planted(run):
    """Check that the model knows the bug: a run with an unknown bug would prove nothing."""
    return not run.bug or re.search(rf"\b{run.bug}\b", (HERE / f"{run.model}.pml").read_text(encoding="utf-8"))


def verdict(run, output):
    """(ok, words)"""
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
    """(ok, words, folder, seconds)"""
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix=f"{run.model}.", dir=build))
    try:
        if not planted(run):
            return False, "the model has no such bug", folder, 0
        ok, words = verdict(run, search(run, folder))
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as wrong:
        ok, words = False, str(wrong)
    return ok, words, folder, time.monotonic() - started


def memory_bytes():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def main():
    parser = argparse.ArgumentParser(description="Check the models with spin.")
    parser.add_argument("--build", default="build/models")
    parser.add_argument("--select", default="*", help="only runs whose name matches")
    parser.add_argument("--quick", action="store_true", help="no search of millions of states, and one planted bug for each model")
    parser.add_argument("--keep", action="store_true", help="keep the folders of failed runs")
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
    workers = ThreadPoolExecutor(max(1, min(os.cpu_count(), memory_bytes() // (MEGABYTES << 20))))
    for run, (ok, words, folder, seconds) in zip(runs, workers.map(lambda run: attempt(run, args.build), runs)):
        failed += not ok
        note = f" ({run.note})" if run.note else ""
        print(f"{'ok' if ok else 'not ok'} {run.name}{note}: {words}, {seconds:.1f} s", flush=True)
        if args.keep and not ok:
            print(f"    kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(runs) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
