#!/usr/bin/env python3
"""`make test WHAT=prove`: CBMC proves what each harness here says, for all inputs up to a bound, and finds the bug that is seeded into it.

PROVE() in a harness' file (prove.h) is its row. A proof is memory safety (bounds, pointers, overflow of signed numbers, shifts, division),
no panic, and each prove(), with an assertion that no loop turns more often. seeds.txt has the bugs, and changes of scale with which a file
is always proved, all as mutants are written (../mutants/README.md); a bug may also be one of ../mutants.
"""

import argparse
import re
import resource
import subprocess
import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("qemu", "model", "mutants", "report")]

import change  # noqa: E402
import typed  # noqa: E402
from keys import digest  # noqa: E402
from mutants import Tree  # noqa: E402

ROW = re.compile(r'^PROVE\((\w+),\s*"([^"]*)",\s*"([^"]*)",\s*"([^"]*)"\)', re.M)
PLACE = re.compile(r"// \d+ file (?:\./)?(\S+) line \d+ function (\w+)")
VIOLATED = re.compile(r"Violated property:\n\s+file \S+ function (\S+) line \d+.*\n\s+(.*)")
FLAGS = ["-I.", "-Itests/host/include", "-Iarch/x86_64/include", "-DHOST_FAST", "--no-malloc-may-fail",
         "--drop-unused-functions", "--slice-formula", "--object-bits", "10"]  # fmt: skip
SECONDS, BYTES = 300, 4 << 30  # of the processor, so that a busy host proves as much
PRODUCT = ("boot/", "arch/", "kernel/", "mm/")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def spent():
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def rows():
    """[(name, file, options, seed, bound)]"""
    texts = ((path.name, path.read_text(encoding="utf-8")) for path in sorted(HERE.glob("*.c")))
    return [(m[1], name, m[2], m[3], m[4]) for name, text in texts for m in ROW.finditer(text)]


def seeds():
    parts = re.split(r"(?m)^(?:Seed|Scale): (\S+)\n", (HERE / "seeds.txt").read_text(encoding="utf-8"))
    return dict(zip(parts[1::2], parts[2::2]))


class Prover:
    def __init__(self, build, tools):
        done = subprocess.run([str(ROOT / "tests/setup/beside.sh"), "cbmc", tools], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise SystemExit(1)
        self.cbmc, self.build, self.seeds, self.lines = done.stdout.strip(), Path(build).resolve(), seeds(), {}
        self.tree = Tree(self.build / "tree")

    def call(self, name, file, options, *more):
        """What CBMC prints; its end is the reason if it did not get done."""
        unwind, *rest = options.split()
        argv = ["nice", "-n", "10", self.cbmc, f"tests/prove/{file}", "--function", f"prove_{name}", "--unwind", unwind]
        argv += [*rest, *FLAGS, *more]
        done = subprocess.run(argv, cwd=self.tree.folder, capture_output=True, text=True, preexec_fn=limit, check=False)
        (self.build / f"{name}.log").write_text(done.stdout + done.stderr, encoding="utf-8")
        return done.stdout + done.stderr

    def change(self, name):
        """The file that describes a change; None: there is no such scale."""
        if name not in self.seeds:
            return None if name.startswith("scale-") else ROOT / f"tests/mutants/{name}.mutant"
        path = self.build / f"{name}.change"
        path.write_text(self.seeds[name], encoding="utf-8")
        return path

    def covered(self, shown):
        """Lines of code, without comments, of the product's functions that CBMC has entered: `shown` are its steps."""
        reached = {found for found in PLACE.findall(shown) if found[0].startswith(PRODUCT)}
        for path, function in reached - self.lines.keys():
            text = (self.tree.folder / path).read_text(encoding="utf-8")
            begin, end = change.functions(text).get(function, [(0, 0)])[0]
            self.lines[path, function] = sum(bool(line.strip()) for line in COMMENT.sub("", text[begin:end]).splitlines())
        return sum(self.lines[key] for key in reached)

    def key(self, shown, options, seed, bound):
        """A hash of all that a row depends on: what is reached, in CBMC's own form, without the places of its lines."""
        text = re.sub(r"(?m)^ *// .*$", "", shown) + options + bound + str(FLAGS) + self.change(seed).read_text(encoding="utf-8")
        return digest(text)

    def row(self, name, file, options, seed, bound):
        """(is it right, a row of the table): what is kept of an earlier run, if nothing that it depends on has changed."""
        scale, kept = self.change(f"scale-{file.removesuffix('.c')}"), self.build / f"{name}.row"
        before = {}
        try:
            before = change.apply(self.tree.folder, scale) if scale else {}
            shown = self.call(name, file, options, "--show-goto-functions")
            lines = self.covered(self.call(name, file, options, "--program-only"))
            key = self.key(shown, f"{options} {lines}", seed, bound)
            if kept.exists() and (known := kept.read_text(encoding="utf-8").partition("\n"))[0] == key:
                return True, known[2]
            right, words = self.prove(name, file, options, seed, bound, lines)
            if right:
                kept.write_text(f"{key}\n{words}", encoding="utf-8")
            return right, words
        except change.DoesNotFit as why:
            return False, f"{name}: {seed} does not fit: {why}"
        finally:
            change.undo(before)

    def prove(self, name, file, options, seed, bound, lines):
        started = spent()
        said = self.call(name, file, options)
        seconds = spent() - started
        count = re.search(r"\*\* 0 of (\d+) failed", said)
        if not count:
            failed = re.findall(r"^\[(\S+)\] (.*): FAILURE$", said, re.M)
            return False, f"{name}: NOT PROVED: " + ("; ".join(": ".join(pair) for pair in failed[:5]) or said.strip()[-300:])
        with self.tree.broken(self.change(seed)):
            found = VIOLATED.search(self.call(name, file, options, "--stop-on-fail"))
        if not found:
            return False, f"{name}: {seed} is NOT FOUND"
        head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
        return True, (f"{name} | {bound} | {seconds:.0f} s | {count[1]} properties | {lines} lines | {seed} | {found[2]} in {found[1]} | "
                      f"{time.strftime('%Y-%m-%d')} {head}")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description="Prove harnesses with CBMC.")
    parser.add_argument("--build", default="build/prove")
    parser.add_argument("--tools", default="build/tools")
    parser.add_argument("--select", default="*")
    parser.add_argument("--table", default="")
    args = parser.parse_args()
    chosen = [row for pattern in args.select.split(",") for row in rows() if fnmatchcase(row[0], pattern)]
    if not chosen:
        raise SystemExit(typed.unmatched("harness", args.select, [row[0] for row in rows()]))
    prover, table, failed = Prover(args.build, args.tools), [], 0
    for row in chosen:
        right, words = prover.row(*row)
        failed += not right
        table.append(words)
        print("ok" if right else "not ok", words, flush=True)
    sums = f"{len(chosen) - failed} of {len(chosen)} harnesses, {sum(prover.lines.values())} lines of the product"
    print(sums)
    if args.table:
        head = "# make test WHAT=prove: harness | bound | time | properties | lines reached | bug | what finds it | date and tree\n"
        Path(args.table).write_text(f"{head}# {sums}\n" + "\n".join(table) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
