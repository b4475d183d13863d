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
    cycles: bool = False
    note: str = ""
    long: bool = False

    @property
    def bug(self):
        return next((d for d in self.defines if d.startswith("BUG_")), "")

    @property
    def name(self):
        return ".".join((self.model, *(d.replace("=", "") for d in self.defines), *(("CYCLES",) if self.cycles else ())))


def rows():
    """The Runs of runs.txt."""
    for line in (HERE / "runs.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            words, _, note = line.partition(": ")
            model, *words = words.split()
            if unknown := [word for word in words if not re.fullmatch(r"cycles|long|[A-Z][A-Z_0-9]*(=\d+|\*)?", word)]:
                raise ValueError(f"runs.txt: {line}: unknown: {unknown[0]}")
            yield Run(model, tuple(word for word in words if word not in ("cycles", "long")), "cycles" in words, note, "long" in words)


ROWS = tuple(rows())
CORRECT = tuple(run for run in ROWS if not run.bug)


def planted_in(model):
    """Runs for each bug that a model can be made to have."""
    text = (HERE / f"{model}.pml").read_text(encoding="utf-8")
    for bug in dict.fromkeys(re.findall(r"^#.*\b(BUG_\w+)", text, re.M)):
        own, others = ([run.defines[1:] for run in ROWS if (run.model, run.bug) == (model, name)] for name in (bug, "BUG_*"))
        yield from (Run(model, (bug, *words)) for words in own or others or [()])


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
