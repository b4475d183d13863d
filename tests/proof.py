#!/usr/bin/env python3
"""`make test WHAT=proof`: runs each row of proof-rows.txt that does not hold, the quickest first, and keeps the table (measurements/proof.txt).

A row holds if it passed with the same command and the same sources, which its key says; the pages and the measured figures are no sources
unless the row reads them. The table is written after each row, so a run that was cut off goes on. The console of a row is BUILD/NAME.log.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("qemu", "mutants")]

import keys  # noqa: E402
import typed  # noqa: E402

MEASURED = "tests/report/measurements/"
LIMIT = 4 * 3600  # seconds of a row
FIELDS = ("name", "result", "seconds", "date", "commit", "key", "said")
HEAD = "# make test WHAT=proof: row | result | seconds | date | commit | key of command and sources | what it said"

# What a row may need of the host: how to find out, and what to say if it is not here.
NEEDS = {
    "bare": (f'[ "$(id -u)" = 0 ] && unshare --mount --pid --fork true && [ -z "$(git status --porcelain -- . :!{MEASURED})" ]',
             "needs root that may mount, and a tree that is committed"),
    "40G": ("awk '/^MemTotal:/ { exit $2 < 40 * 2^20 }' /proc/meminfo", "needs a host with 40 GiB"),
}


class Row(NamedTuple):
    name: str
    minutes: float
    command: str
    sources: tuple
    says: str = r"\d+ passed, \d+ failed.*"
    needs: str = ""


def read_rows(text):
    """({name of a list: its sources}, the rows), of the text of proof-rows.txt."""
    lists, rows = {}, []

    def paths(words):
        return tuple(path for word in words.split() for path in lists.get(word, [word]))

    for line in text.splitlines():
        if found := re.match(r"([A-Z]+): (.+)", line):
            lists[found[1]] = paths(found[2])
        elif line and line[0] != "#":
            name, minutes, command, sources, *more = line.split(" | ")
            rows.append(Row(name, float(minutes), command, paths(sources), *more))
    return lists, rows


LISTS, ROWS = read_rows((ROOT / "tests/proof-rows.txt").read_text(encoding="utf-8"))


class Proof:
    def __init__(self, root, rows, table, logs):
        self.root, self.rows, self.table, self.logs = root, rows, table, logs
        logs.mkdir(parents=True, exist_ok=True)

    @property
    def kept(self):
        """{name: fields} of the table, which another run may have written meanwhile."""
        lines = self.table.read_text(encoding="utf-8").splitlines() if self.table.exists() else []
        split = (line.split(" | ", len(FIELDS) - 1) for line in lines if not line.startswith("#"))
        return {parts[0]: dict(zip(FIELDS, parts)) for parts in split if len(parts) == len(FIELDS)}

    def git(self, *words):
        return subprocess.run(["git", *words], cwd=self.root, stdout=subprocess.PIPE, text=True, check=True).stdout

    def key(self, row):
        paths = self.git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
        mine = {path for path in paths if any(fnmatchcase(path, glob) for glob in row.sources) and not path.startswith(MEASURED)
                and ("*.md" in row.sources or not path.endswith(".md"))}  # fmt: skip
        return keys.digest(row.command, keys.digest_of(self.root, filter(lambda path: (self.root / path).is_file(), mine)))[:12]

    def commit(self):
        """+: with changes that are not committed."""
        changed = self.git("status", "--porcelain", "--", ".", f":!{MEASURED}")
        return self.git("rev-parse", "--short", "HEAD").strip() + "+" * bool(changed)

    def why(self, row, table):
        """Why a row must run; "": it holds."""
        kept = table.get(row.name)
        if not kept or kept["result"] != "passed":
            return f"{kept['result']} on {kept['date']}" if kept else "never run"
        return "" if kept["key"] == self.key(row) else f"changed since {kept['date']}, {kept['commit']}"

    def minutes(self, row):
        kept = self.kept.get(row.name, {"result": ""})
        return float(kept["seconds"]) / 60 if kept["result"] == "passed" else row.minutes

    def write(self, row, result, seconds, commit, key, said):
        words = (row.name, result, f"{seconds:.0f}", time.strftime("%Y-%m-%d", time.gmtime()), commit, key, said)
        kept = self.kept | {row.name: dict(zip(FIELDS, words))}
        lines = [" | ".join(kept[row.name].values()) for row in self.rows if row.name in kept]
        never = [f"# never run: {row.name}" for row in self.rows if row.name not in kept]
        hold = f"# {sum(not self.why(row, kept) for row in self.rows)} of {len(self.rows)} rows hold in {commit}"
        new = self.table.with_suffix(".new")
        new.write_text("\n".join([HEAD, hold, *never, *lines]) + "\n", encoding="utf-8")
        new.replace(self.table)
        print(f"  {result:8} {row.name}: {said}, {seconds:.0f} s", flush=True)

    def call(self, command, log):
        """The exit status, or None after LIMIT. Whatever ends this process ends the processes of the row."""
        ours = typed.variables()  # make gives rows those that were typed for the proof, such as T
        environment = {k: v for k, v in os.environ.items() if k not in ours and not k.startswith(("MAKE", "MFLAGS", "PYTEST"))}
        with log.open("wb") as out:
            child = subprocess.Popen(["sh", "-c", command], cwd=self.root, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
            try:
                return child.wait(LIMIT)
            except subprocess.TimeoutExpired:
                return None
            finally:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()

    def run(self, row):
        """Whether it passed, which needs a result that the row tells."""
        key, commit, log = self.key(row), self.commit(), self.logs / f"{row.name}.log"
        probe, lacks = NEEDS.get(row.needs, ("true", ""))
        if subprocess.run(["sh", "-c", probe], cwd=self.root, capture_output=True, check=False).returncode:
            self.write(row, "not here", 0, commit, key, lacks)
            return False
        started = time.monotonic()
        status = self.call(row.command.format(seed=int(key[:5], 16)), log)
        text = log.read_text(encoding="utf-8", errors="replace")
        found = re.findall(rf"(?m){row.says}", text)
        said = (found or text.strip().splitlines() or ["nothing"])[-1].strip()[:120]
        nothing = not found or re.match(r"0 pass|0 of|totals pass:0 ", said)
        if status == 0 and self.key(row) != key:
            status, said = 1, f"its sources changed while it ran; {said}"
        elif status == 0 and nothing:
            status, said = 1, f"it passed nothing; {said}"
        elif status != 0:
            said = f"status {status}; {said}" if status is not None else f"not done after {LIMIT} s"
        self.write(row, "passed" if status == 0 else "failed", time.monotonic() - started, commit, key, said)
        return status == 0

    def all(self, select="*"):
        """Run what does not hold. Returns whether all that were selected hold now."""
        chosen = [row for row in self.rows if any(fnmatchcase(row.name, name) for name in select.split(","))]
        if not chosen:
            raise SystemExit(typed.unmatched("row", select, [row.name for row in self.rows]))
        wanted = []
        for row in sorted(chosen, key=self.minutes):
            table = self.kept
            why = self.why(row, table)
            wanted += [row] if why else []
            print(f"  {'to run' if why else 'holds':8} {row.name}: {why or '{date}, {commit}: {said}'.format(**table[row.name])}")
        print(f"{len(wanted)} of {len(chosen)} rows to run, about {sum(map(self.minutes, wanted)):.0f} min", flush=True)
        missed = [row.name for row in wanted if not self.run(row)]
        print(f"{len(chosen) - len(missed)} of {len(chosen)} rows hold" + (f"; not: {', '.join(missed)}" if missed else ""))
        return not missed


def main():
    parser = argparse.ArgumentParser(description="Run what the table of proofs does not hold.")
    parser.add_argument("--build", default="build/proof")
    parser.add_argument("--select", default="*", help="rows, with commas between")
    args = parser.parse_args()
    return 0 if Proof(ROOT, ROWS, ROOT / MEASURED / "proof.txt", Path(args.build)).all(args.select) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
