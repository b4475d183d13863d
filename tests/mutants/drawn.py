#!/usr/bin/env python3
"""`make test WHAT=mutants-random`: breaks lines that a seed draws, in ways that a tool of others chooses, and counts how many the tests notice.

Each mutant that candidates.py draws goes through these stages, in a copy of the tree, until something notices it (README.md):

    sift     the kernel's object is compiled; a mutant that the build refuses, or that changes no object, is not counted
    file     hosted, under the address sanitizer: the suites that are named like the file, such as mm.pcp for pcp_drain.c
    machines the hosted kernel boots as the machines of tests/replay
    hosted   all other suites, hosted
    guest    all cases in one guest

A mutant that was noticed stays noticed while its file is unchanged. One that survived is tried again when any source or case changes.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import candidates
from mutants import ROOT, Progress, Tree, pytest_outcome

sys.path[:0] = [str(ROOT / "tests/qemu"), str(ROOT / "tests/programs")]

from fetch import Fetcher, Missing  # noqa: E402
from guest import Guest  # noqa: E402
from hosted import run_hosted  # noqa: E402
from ktap import Ktap  # noqa: E402
from machine import Machine  # noqa: E402

HERE = Path(__file__).resolve().parent
HOSTED = ("-c", "4", "-m", "1G")
CASE_SECONDS, STAGE_SECONDS = 120, 1800
GUEST, GUEST_SECONDS = Machine("pvh", 4, "512M", cmdline="end.hang=30 test=*"), 60
FRESH = {"outcome": "", "stage": "", "case": ""}


# ---- what is run -------------------------------------------------------------------------------------------------


class FirstFailure:
    """Reads the lines of a run up to the first case that fails."""

    def __init__(self):
        self.ktap, self.case = Ktap(), None

    def feed(self, line):
        case = self.ktap.feed(line)
        if case and case.outcome == "failed" and not self.case:
            self.case = case.name
        return self.case


def hosted_failure(tree, patterns):
    """The first case that fails hosted, or the suite in which the runner dies, or None. The run ends there."""
    argv, first = [str(tree.folder / "build/host/asan/ashlar-host"), *HOSTED, "-t", str(CASE_SECONDS), patterns], FirstFailure()
    status = run_hosted(argv, first.feed, STAGE_SECONDS, tree.folder)
    return first.case or (f"{first.ktap.suite or 'runner'}.*" if status else None)


def guest_failure(tree):
    """The first case that fails in the guest, which ends it, or the suite in which the guest ends, or None if it passes."""
    first = FirstFailure()
    with Guest(GUEST, tree.folder / "build/ashlar.elf", lambda line: first.feed(line) and guest.child.kill(signal.SIGKILL)) as guest:
        outcome = guest.finish(GUEST_SECONDS)
    if first.case or outcome.verdict == "pass" and not outcome.problem:
        return first.case
    return f"the guest, in {first.ktap.suite or 'no suite'}"


def is_hosted(tree, path):
    return (tree.folder / "build/host/asan" / path).with_suffix(".o").is_file()


def compiled(tree, path, flags="KERNEL_CFLAGS"):
    """The object of a file without debugging information, or None if the build refuses the file."""
    out = tree.folder / "build/sift.o"
    argv = [*shlex.split(os.environ["CC"]), *shlex.split(os.environ[flags]), "-g0", "-c", path, "-o", str(out)]
    done = subprocess.run(argv, cwd=tree.folder, capture_output=True, check=False)
    return out.read_bytes() if done.returncode == 0 else None


def suites_of(tree):
    program = tree.folder / "build/host/asan/ashlar-host"
    listed = subprocess.run([program, "-l"], capture_output=True, text=True, check=True, cwd=tree.folder).stdout
    return sorted({line.strip().rpartition(".")[0] for line in listed.splitlines() if "." in line})


def is_near(suite, path):
    """Whether a suite has the name of a file or of the beginning of it, or the other way round."""
    name, stem = suite.rpartition(".")[2], Path(path).stem
    return stem.startswith(name) or name.startswith(stem)


# ---- one mutant --------------------------------------------------------------------------------------------------


class Worker:
    def __init__(self, tree):
        self.tree, self.plain = tree, {}  # plain: the objects of the unbroken tree, by file

    def unbroken(self):
        for target in ("host-asan", "kernel"):
            wrong = self.tree.make(target)
            if wrong:
                raise SystemExit(f"the unbroken tree does not build: {wrong}")
        if pytest_outcome(self.tree, "test_replay.py") != "passed":
            raise SystemExit("the unbroken tree fails test_replay.py")

    def broken(self, source, candidate, work):
        path = self.tree.folder / candidate.path
        path.write_text(source.broken(candidate), encoding="utf-8")
        try:
            return work()
        finally:
            path.write_text(source.text, encoding="utf-8")

    def sift(self, source, candidate):
        if candidate.path not in self.plain:
            self.plain[candidate.path] = compiled(self.tree, candidate.path)
        plain = self.plain[candidate.path]
        if plain is None:
            raise SystemExit(f"{candidate.path} does not compile unbroken")
        other = self.broken(source, candidate, lambda: compiled(self.tree, candidate.path))
        if other is None or other == plain:
            return "same" if other else "refused"
        if not is_hosted(self.tree, candidate.path):
            return "counted"
        hosted = self.broken(source, candidate, lambda: compiled(self.tree, candidate.path, "HOST_CFLAGS"))
        return "counted" if hosted else "refused"

    def judge(self, source, candidate):
        return self.broken(source, candidate, lambda: self._stages(candidate))

    def _stages(self, candidate):
        hosted = is_hosted(self.tree, candidate.path)
        if hosted and self.tree.make("host-asan"):
            return {"outcome": "refused"}
        noticed = self._hosted(candidate.path) if hosted else None
        if noticed is None:
            if self.tree.make("kernel"):
                return {"outcome": "refused"}
            again = guest_failure(self.tree) and guest_failure(self.tree)
            noticed = again and ("guest", again)
        return dict(zip(("outcome", "stage", "case"), ("noticed", *noticed))) if noticed else {"outcome": "survived"}

    def _hosted(self, path):
        """(stage, case) of what notices hosted, or None."""
        suites = suites_of(self.tree)
        near = [suite for suite in suites if is_near(suite, path)]
        for stage, chosen in (("file", near), ("hosted", [suite for suite in suites if suite not in near])):
            if stage == "hosted" and self._replay_fails() and self._replay_fails():
                return "machines", "test_replay.py"
            found = hosted_failure(self.tree, ",".join(f"{suite}.*" for suite in chosen)) if chosen else None
            again = found and hosted_failure(self.tree, found)
            if again:
                return stage, again
        return None

    def _replay_fails(self):
        return pytest_outcome(self.tree, "test_replay.py") == "failed"


# ---- the run -----------------------------------------------------------------------------------------------------


def digest_of(root, folders):
    total = hashlib.sha256()
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in (".c", ".h", ".S", ".lds"):
                total.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


class Results:
    """What is known of each mutant, in one file each."""

    def __init__(self, folder, sources):
        self.folder, self.sources = folder, sources
        folder.mkdir(parents=True, exist_ok=True)

    def _path(self, candidate, source):
        return self.folder / (candidates.digest(*candidate.key, candidate.line, source.text)[:24] + ".json")

    def get(self, candidate, source):
        """The result, or a fresh one. Only a mutant that survived elsewhere is tried again."""
        path = self._path(candidate, source)
        found = json.loads(path.read_text()) if path.is_file() else dict(FRESH)
        stale = found["outcome"] == "survived" and found.get("sources") != self.sources
        return dict(found, outcome="counted") if stale else found

    def put(self, candidate, source, **news):
        found = dict(self.get(candidate, source), sources=self.sources, **news)
        path = self._path(candidate, source)
        new = path.with_suffix(f".{os.getpid()}")  # another shard may write the same
        new.write_text(json.dumps(found, indent=1))
        new.rename(path)
        return found


class Run:
    def __init__(self, args):
        self.args = args
        folder = Path(args.build).resolve()
        self.sources = digest_of(ROOT, (*candidates.FOLDERS, "tests/kernel", "tests/host"))
        self.results = Results(folder / "results", self.sources)
        self.draw = candidates.Draw(ROOT)
        self.marks = candidates.read_marks(HERE / "equivalent.txt")
        self.worker = Worker(Tree(folder / f"tree-{args.shard.replace('/', '-of-')}"))

    def _sifted(self, candidate):
        """Whether a mutant counts, in a word: counted, refused, same, or what later stages found."""
        source = self.draw.sources[candidate.path]
        known = self.results.get(candidate, source)
        if known["outcome"]:
            return known["outcome"]
        return self.results.put(candidate, source, outcome=self.worker.sift(source, candidate))["outcome"]

    def counted(self):
        found, words = [], Counter()
        for candidate in self.draw.order(self.args.seed):
            if len(found) == self.args.number:
                break
            word = self._sifted(candidate)
            words[word if word in ("refused", "same") else "counted"] += 1
            found += [candidate] if word not in ("refused", "same") else []
        return found, words

    def _is_open(self, candidate):
        known = self.results.get(candidate, self.draw.sources[candidate.path])
        return known["outcome"] == "counted" and candidate.key not in self.marks

    def _judged(self, candidate):
        source = self.draw.sources[candidate.path]
        news = self.worker.judge(source, candidate)
        return self.results.put(candidate, source, **{**FRESH, **news})

    def run(self):
        shard, shards = map(int, self.args.shard.split("/"))
        self.worker.unbroken()
        found, words = self.counted()
        print(f"seed {self.args.seed}: {sum(words.values())} mutants drawn; the build refuses {words['refused']}, {words['same']} compile to the "
              f"same object, {words['counted']} count", flush=True)
        to_try = [candidate for candidate in found[shard - 1 :: shards] if self._is_open(candidate)]
        progress = Progress("mutant", list(map(place_of, to_try)), Path(self.args.build) / f"seconds.{shard}.json")
        for candidate in to_try:
            progress.begin(place_of(candidate))
            known = self._judged(candidate)
            progress.end(place_of(candidate))
            progress.say(line_of(candidate, known) + "\n")
        rows = [(candidate, self.results.get(candidate, self.draw.sources[candidate.path])) for candidate in found]
        return report(self.args, rows, words, self.marks)


# ---- the score ---------------------------------------------------------------------------------------------------


def place_of(candidate):
    return f"{candidate.path}:{candidate.line}"


def line_of(candidate, known):
    by = f" by {known['case']} ({known['stage']})" if known["outcome"] == "noticed" else ""
    where = f"{place_of(candidate)} {candidate.function}"
    text = f"\n    - {candidate.before.strip()}\n    + {candidate.after.strip()}" if known["outcome"] == "survived" else ""
    return f"{known['outcome']} {where}{by}{text}"


def section(args, rows, words, marks):
    """(lines of the score about one seed, how many survived or were not tried)."""
    total, survived = Counter(), []
    for candidate, known in rows:
        word = "equivalent" if candidate.key in marks else known["outcome"]
        total[word] += 1
        survived += [candidate] if word == "survived" else []
    judged = total["noticed"] + total["survived"]
    untried = len(rows) - judged - total["equivalent"]
    tree = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    lines = [
        f"## Seed {args.seed}", "",
        f"{time.strftime('%Y-%m-%d', time.gmtime())}, tree {tree}, `make test WHAT=mutants-random N={args.number} SEED={args.seed}`: "
        f"{words['counted']} mutants count. The build",
        f"refused {words['refused']} others, and {words['same']} compiled to the same object.", "",
        f"Noticed: **{total['noticed']} of {judged}**, {100 * total['noticed'] / max(judged, 1):.1f}%. Equivalent: {total['equivalent']}. "
        f"Not tried: {untried}.",
    ]  # fmt: skip
    if survived:
        shown = [text for one in survived for text in (f"{one.path} {one.function}", f"- {one.before.strip()}", f"+ {one.after.strip()}")]
        lines += ["", "Survivors:", "", "```", *shown, "```"]
    return lines, len(survived) + untried


def report(args, rows, words, marks):
    lines, left = section(args, rows, words, marks)
    print("\n".join(lines))
    if args.score:
        path = Path(args.score)
        parts = re.split(r"(?m)^(?=## Seed )", path.read_text(encoding="utf-8"))
        kept = [part.rstrip() for part in parts[1:] if part.splitlines()[0] != lines[0]]
        path.write_text("\n\n".join([parts[0].rstrip(), *kept, "\n".join(lines)]) + "\n", encoding="utf-8")
    return 1 if left else 0


def main():
    parser = argparse.ArgumentParser(description="Break lines drawn at random and count how many the tests notice.")
    parser.add_argument("--build", default="build/mutants-random")
    parser.add_argument("--tools", default="build/tools", help="the tool that makes the mutants is kept in its folder programs/")
    parser.add_argument("--number", type=int, default=400)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--shard", default="1/1", help="i/n: try only every n-th mutant, from the i-th")
    parser.add_argument("--score", default="", help="the file whose section about the seed is written")
    args = parser.parse_args()
    try:
        candidates.fetch_tool(Fetcher(Path(args.tools) / "programs"))
    except Missing as why:
        raise SystemExit(f"no mutants: {why}") from why
    return Run(args).run()


if __name__ == "__main__":
    sys.exit(main())
