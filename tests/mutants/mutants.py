#!/usr/bin/env python3
"""`make test WHAT=mutants`: breaks promises on purpose and requires the named test to notice. README.md says how mutants are written and judged.

A mutant that does not fit, does not build, or whose case was not even started counts as not caught. As many mutants run at a time as there
are CPUs, each in its own copy of the tree.
"""

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("qemu", "model", "mutants", "report")]

import change  # noqa: E402
import patience  # noqa: E402
import steps  # noqa: E402
import typed  # noqa: E402
from ktap import Ktap  # noqa: E402
from machine import Machine, without_make  # noqa: E402
from progress import Progress  # noqa: E402

SOURCES = ("Makefile", "VERSION", "linker.ld", "ashlar.h", "ashlar.symbols", "boot", "arch", "kernel", "mm", "tests")
FIELDS = {"Promise", "Break", "Case", "Build", "Machine", "Search"}
BUILD_SECONDS, RUN_SECONDS = 600, 90  # a broken build may hang: two minutes for a mutant in all
SCHEDULES, SEARCH_SECONDS = 1000, 300
LATE = re.compile(r"no verdict within \d+ s|the run hangs|: it hung: ")
CRASH = re.compile(r"PANIC on CPU|killed by signal|the machine crashed|no verdict, exit status|verdict crash")
CAUGHT = {"failed": "", "late": "a time-out", "died": "a crash"}  # by what else than a failed expectation


class Mutant:
    def __init__(self, path):
        self.path, self.name = path, path.stem
        header = path.read_text(encoding="utf-8").partition("\nIn: ")[0]
        self.field = {name: text.strip() for name, text in re.findall(r"^([A-Z][a-z]+): (.+)$", header, re.M)}
        unknown, missing = set(self.field) - FIELDS, {"Promise", "Break", "Case", "Build"} - set(self.field)
        if unknown or missing:
            raise SystemExit(f"{path}: header: unknown {sorted(unknown)}, missing {sorted(missing)}")
        self.number, self.target = self.name.partition("-")[0], self.field["Build"]
        self.cases, self.promises = self.field["Case"].split(", "), self.field["Promise"].split(", ")
        self.searches = self.field["Search"].split(", ") if "Search" in self.field else []
        self.by_steps = self.target == "spin" and not self.searches  # steps.txt notices the code half of those that break a model
        self.model = self.cases[0].partition(".")[0] if self.target == "spin" else ""
        self.files = sorted(change.files(ROOT, self.path))
        models = [name for name in self.files if name.startswith("tests/model/")]
        code = [name for name in self.files if not name.startswith("tests/")]
        wrong = models != [f"tests/model/{self.model}.pml"] or not code if self.target == "spin" else models
        if wrong:
            raise SystemExit(f"{path}: Build: spin breaks the model of its case and the code alike, others break no model")

    @property
    def checks(self):
        """[(target, case)]: what must notice the mutant."""
        return [(self.target, case) for case in self.cases] + [("host-explore", case) for case in self.searches]

    @property
    def tests(self):
        """All that must notice the mutant."""
        cases = [f"model/{case}" if target == "spin" else case for target, case in self.checks]
        return cases + ["test_steps.py::test_the_code_says_each_step"] * self.by_steps


def every_mutant():
    return [Mutant(path) for path in sorted(Path(__file__).parent.glob("*.mutant"))]


def made_for(target):
    """Broken code must build, even where a model shows the error; otherwise the mutant itself is wrong."""
    return "kernel" if target == "spin" else target


def copy_changed(source, copy):
    """What differs from a file that is there gets the time of now, so that make builds it again."""
    if not os.path.exists(copy):
        shutil.copy2(source, copy)
    elif Path(source).read_bytes() != Path(copy).read_bytes():
        shutil.copy(source, copy)


def copy_tree(folder):
    """The sources as they are, also if others are there already."""
    for name in SOURCES:
        for path in (folder / name).rglob("*"):
            if path.is_file() and not (ROOT / path.relative_to(folder)).is_file():
                path.unlink()
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored, copy_function=copy_changed, dirs_exist_ok=True)
        else:
            copy_changed(ROOT / name, folder / name)


class Tree:
    """One copy of the sources, which is broken and restored, so that each mutant builds only the files that it changes. Objects that an earlier
    run left there are used; in a new copy, those of the tree `like`."""

    def __init__(self, folder, like=None):
        self.folder = folder
        if like and not folder.exists():
            new = folder.with_suffix(".new")  # one that was interrupted is not taken for whole
            shutil.rmtree(new, ignore_errors=True)
            shutil.copytree(like.folder, new).rename(folder)
        folder.mkdir(parents=True, exist_ok=True)
        copy_tree(folder)

    @contextmanager
    def broken(self, path, leave_out=""):
        """The tree with the mutant in it, but not below the folder `leave_out`."""
        before = change.apply(self.folder, path, leave_out)
        try:
            yield self
        finally:
            change.undo(before)

    def make(self, target):
        done = finished(["make", target], BUILD_SECONDS, cwd=self.folder, env=without_make())
        if done.returncode is None:
            return f"make {target} took over {BUILD_SECONDS} s"
        return "" if done.returncode == 0 else (done.stdout + done.stderr)[-2000:]


def finished(argv, seconds=RUN_SECONDS, **more):
    """The process at its end. If its time (patience.py) is over first, it has no status, and what it had printed until then."""
    try:
        return patience.run(argv, seconds, **more)
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(argv, None, (late.stdout or b"").decode(errors="replace"), "")


def hosted_lines(tree, target, described, case):
    program = tree.folder / "build/host" / target.removeprefix("host-") / "ashlar-host"
    cpus, mem = described.split()
    return finished([str(program), "-c", cpus, "-m", mem, "-t", str(RUN_SECONDS // 2), case]).stdout.splitlines()


def guest_lines(tree, described, case):
    from guest import run  # only these need pexpect

    firmware, cpus, mem, *nodes = described.split()
    machine = Machine(firmware, int(cpus), mem, int(nodes[0]) if nodes else 1, cmdline=f"end.hang={RUN_SECONDS // 3} test={case}")
    return run(machine, tree.folder / "build/ashlar.elf", RUN_SECONDS).lines


def both_halves(tree, mutant, case):
    """failed if spin finds an error in the model and the code does not agree with its steps; passed if neither is so; else which of the
    two. If a search judges the code, what spin says."""
    model = searched(tree, case)
    if not mutant.by_steps:
        return model
    complaints = steps.complaints(tree.folder, mutant.model)
    if (model == "failed") == bool(complaints):
        return model
    return f"by spin {model}, by steps.txt {complaints[0] if complaints else 'passed'}"


def searched(tree, case):
    """The result of the models in the tree: passed, failed, or absent if there is no such run or it has no result."""
    argv = [sys.executable, str(tree.folder / "tests/model/run.py"), "--build", str(tree.folder / "build/models"), "--select", case]
    done = finished(argv)
    # Only an error that spin found counts; a model that cannot be translated or searched to its end does not.
    if re.search(r"^not ok .*: (assertion violated|invalid end state)", done.stdout, re.M):
        return "failed"
    return "passed" if done.returncode == 0 and re.search(r"^ok ", done.stdout, re.M) else "absent"


def outcome_of(done):
    """passed or failed, as the exit status says; absent after any other status, or if it did not end in time."""
    return {0: "passed", 1: "failed"}.get(done.returncode, "absent")


def pytest_outcome(tree, test):
    """Runs a test of tests/qemu, in the version of the tree, on the files built in the tree. Its machines of the proof come last. A test that has
    no others runs with those of --machines."""
    argv = ["/usr/bin/python3", "-m", "pytest", "-qx", "-p", "no:cacheprovider", f"tests/qemu/{test}", "--build", "build"]
    often = outcome_of(finished(argv, cwd=tree.folder))
    if often == "failed":
        return often
    proof = outcome_of(finished([*argv, "--proof"], cwd=tree.folder))  # absent if it has no such machines
    found = often if proof == "absent" else proof
    return outcome_of(finished([*argv, "--machines"], cwd=tree.folder)) if found == "absent" else found


def explored(tree, case, schedules=SCHEDULES):
    """failed, too, if the first schedule has no end, of which the explorer says only that it is too long."""
    argv = [str(tree.folder / "build/host/explore/ashlar-host"), "-q", "-S", str(schedules), case]
    done = finished(argv, SEARCH_SECONDS)
    return "failed" if re.search(r"  too long$", done.stdout, re.M) else outcome_of(done)


def how_it_failed(detail):
    """late, died or failed, as below, by what a run said."""
    return "late" if LATE.search(detail) else "died" if CRASH.search(detail) else "failed"


def how_it_ended(ktap, case):
    """passed, skipped, failed (the case noticed), late (time alone did), died (a crash or the end of the run inside the suite), or absent."""
    found = [one for one in ktap.cases if fnmatchcase(one.name, case)]
    failed = [one for one in found if one.outcome == "failed"]
    inside = ktap.suite and case.startswith(ktap.suite)
    if not failed and not inside:
        return found[0].outcome if found else "absent"
    detail = failed[0].detail if failed else "\n".join(ktap.since)
    if f"# {failed[0].name if failed else case}: " in detail:
        return "failed"
    how = how_it_failed(detail)
    return "died" if inside and how == "failed" else how


def outcome(tree, mutant, target, case):
    """As how_it_ended() says, or in words the half that was noticed."""
    if "::" in case:
        return pytest_outcome(tree, case)
    if target == "spin":
        return both_halves(tree, mutant, case)
    if target == "host-explore":
        return explored(tree, case)
    if target == "kernel":
        lines = guest_lines(tree, mutant.field.get("Machine", "pvh 4 512M"), case)
    else:
        lines = hosted_lines(tree, target, mutant.field.get("Machine", "4 768M"), case)
    ktap = Ktap()
    for line in lines:
        ktap.feed(line)
    return how_it_ended(ktap, case)


def unbroken(tree, mutant, known):
    """"" if the cases pass on the unbroken tree, else what is wrong. All unbroken trees are alike, so one check is enough."""
    for target, case in mutant.checks:
        key = (target, mutant.field.get("Machine"), case)
        if key not in known:
            wrong = tree.make(made_for(target))
            known[key] = f"the unbroken tree does not build: {wrong}" if wrong else outcome(tree, mutant, target, case)
        if known[key] != "passed":
            return f"on the unbroken tree {case}: {known[key]}"
    return ""


def attempt(tree, mutant, known):
    """("" if the mutant was caught by each of its cases, else why not; which of them were no more than a crash or a time-out)."""
    wrong = unbroken(tree, mutant, known)
    if wrong:
        return wrong, ""
    try:
        with tree.broken(mutant.path):
            after = {}
            for target, case in mutant.checks:
                wrong = tree.make(made_for(target))
                if wrong:
                    return f"the broken tree does not build: {wrong}", ""
                after[case] = outcome(tree, mutant, target, case)
    except change.DoesNotFit as why:
        return f"the mutant does not fit: {why}", ""
    missed = [f"NOT CAUGHT: {case} {found}" for case, found in after.items() if found not in CAUGHT]
    only = "".join(f", {case} only by {CAUGHT[found]}" for case, found in after.items() if CAUGHT.get(found))
    return "\n".join(missed), only


def attempt_in_any(trees, mutant, known):
    """(reason why the mutant was not caught, cases that noticed by a crash or a time-out only, seconds), in a free tree."""
    started, tree = time.monotonic(), trees.get()
    try:
        return *attempt(tree, mutant, known), time.monotonic() - started
    finally:
        trees.put(tree)


def main():
    parser = argparse.ArgumentParser(description="Break promises and require the tests to notice.")
    parser.add_argument("--build", default="build/mutants")
    parser.add_argument("--select", default="*", help="only mutants whose file name matches")
    args = parser.parse_args()

    mutants = [mutant for mutant in every_mutant() if fnmatchcase(mutant.name, args.select)]
    if not mutants:
        raise SystemExit(typed.unmatched("mutant", args.select, [mutant.name for mutant in every_mutant()]))
    mutants.sort(key=lambda mutant: mutant.target)  # the sort is stable, so each tree changes its target as seldom as possible
    at_once = min(os.cpu_count(), len(mutants))
    trees = queue.SimpleQueue()
    first = Tree(Path(args.build).resolve() / "tree0")
    trees.put(first)
    if at_once > 1:
        for target in sorted({made_for(target) for mutant in mutants for target, _ in mutant.checks}):
            first.make(target)  # a failure is reported with the mutants
    for n in range(1, at_once):
        trees.put(Tree(Path(args.build).resolve() / f"tree{n}", like=first))
    failed, known = 0, {}
    workers = ThreadPoolExecutor(at_once)
    results = workers.map(lambda mutant: attempt_in_any(trees, mutant, known), mutants)
    progress = Progress("mutant", [mutant.name for mutant in mutants], Path(args.build) / "seconds.json", at_once)
    for mutant in mutants:
        progress.begin(mutant.name)
        wrong, only, seconds = next(results)
        progress.end(mutant.name, seconds)
        failed += bool(wrong)
        word = "not ok" if wrong else "ok"
        progress.say(f"{word} {mutant.name}: {mutant.field['Break']} [{mutant.field['Case']}] {seconds:.0f} s{only}\n")
        if wrong:
            print("    " + wrong.replace("\n", "\n    "))
        sys.stdout.flush()
    print(f"{len(mutants) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
