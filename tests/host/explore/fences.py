#!/usr/bin/env python3
"""Asks of each fence and each locked instruction in mm/ and kernel/core whether a search notices that it is missing.

    tests/host/explore/fences.py --build build [--cases 'mm.pcp.*'] [--table FILE]

Nothing is built anew: the program weakens the places that -w names (weak.c). A fence becomes none. A locked instruction becomes a load and,
after a point at which other CPUs may run, a store. The places of one line of source are weakened together, and the concurrent cases that
reach them are searched, short ones first, until one fails. A line of the table is such a place, with the case that notices, or with the
sentence that fences.txt has for it, or with neither.

What was found is kept under BUILD/explore and is not tried again while the program is the same. Exit status: 1 if, of all cases,
a place has neither, or a pattern has no place.
"""

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE))

import search  # noqa: E402

CALL = re.compile(r"^ *([0-9a-f]+):\tcall +[0-9a-f]+ <(?:explore_(fence)|__tsan_atomic\d+_(exchange|fetch_\w+|compare_exchange)_?\w*)>")
FOLDERS = ("mm/", "kernel/core/")
CASES = 12  # that reach a place and are searched long
SCHEDULES = 1000  # of each of them
COST_MOST = 8_000_000  # ns of a schedule: longer cases are not searched


def places(program):
    """{(file, function, operation, statement): [offset]}: where calls of the run-time return to."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True, text=True, check=True).stdout.splitlines()
    found = []
    for line, following in zip(text, text[1:]):
        if match := CALL.match(line):
            found.append((int(following.split(":")[0], 16) if ":" in following else int(match[1], 16) + 5, match[2] or match[3]))
    argv = ["addr2line", "-a", "-i", "-f", "-e", program, *(hex(offset - 1) for offset, _ in found)]
    answers = re.split(r"^0x[0-9a-f]+\n", subprocess.run(argv, capture_output=True, text=True, check=True).stdout, flags=re.MULTILINE)[1:]
    grouped = {}
    for (offset, operation), answer in zip(found, answers):
        lines = answer.splitlines()
        for function, where in zip(lines[::2], lines[1::2]):
            path, _, number = where.split(" ")[0].rpartition(":")
            path = os.path.relpath(path, ROOT)
            if "/include/arch/" in path:
                continue
            if path.startswith(FOLDERS):
                statement = (ROOT / path).read_text(encoding="utf-8").splitlines()[int(number) - 1].partition("/*")[0].strip()
                grouped.setdefault((path, function, operation, statement), []).append(offset)
            break
    return grouped


class Weakened(search.Search):
    def search(self, case, offsets, schedules):
        return self.run(case, 20, "-q", "-S", str(schedules), "-w", ",".join(f"{offset:x}" for offset in offsets))[0]

    def reached(self, case):
        def find():
            match = re.search(r"^# reached:(.*)$", self.search(case, [], 4), re.MULTILINE)
            return [int(word, 16) for word in match[1].split()] if match else []

        return set(self.remembered(f"{case}.reached", [], find))

    def noticed(self, name, offsets, cases):
        """[case, schedule, reason] of the first finding, or [""]. A few schedules of many cases come before many of a few."""

        def find():
            for case, times in [(case, SCHEDULES // 5) for case in cases[:CASES * 5]] + [(case, SCHEDULES) for case in cases[:CASES]]:
                if match := re.search(r"^# FINDING (\S+): schedule (\d+): (.*)$", self.search(case, offsets, times), re.MULTILINE):
                    return [match[1], int(match[2]), match[3]]
            return [""]

        return self.remembered(f"{'.'.join(name[:3]).replace('/', '-')}.{offsets[0]:x}", [cases, SCHEDULES], find)


def explained(path):
    """[(pattern, sentence)]: what is known of places whose line in the table matches."""
    text = re.sub(r"^#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    groups = re.findall(r"((?:^\S.*\n)+) +(.+)\n", text, re.MULTILINE)
    return [(pattern, sentence) for patterns, sentence in groups for pattern in patterns.splitlines()]


def main():
    parser = argparse.ArgumentParser(description="Weaken each fence and each locked instruction, and search.")
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--cases", default="*", help="search only these cases")
    parser.add_argument("--table", type=Path, help="write the table to this file")
    args = parser.parse_args()

    weakened, at_once = Weakened(args.build, 1), ThreadPoolExecutor(os.cpu_count())
    sites = places(weakened.program)
    cases = weakened.cases(args.cases)
    first = {case: row for case, (row, _, _) in zip(cases, at_once.map(lambda case: weakened.explore(case, 1), cases)) if row}
    short = [case for case, row in first.items() if row["cpus"] > 1 and search.cost_of(row) <= COST_MOST]
    short.sort(key=lambda case: first[case]["points"])
    reached = dict(zip(short, at_once.map(weakened.reached, short)))

    def judge(site):
        by = sorted((case for case in short if reached[case] & set(sites[site])), key=lambda case: len(reached[case]))
        return len(by), weakened.noticed(site, sites[site], by) if by else [""]

    sentences, lines, noticed, explanations = explained(HERE / "fences.txt"), [], 0, 0
    if not sites:
        sys.exit(f"{weakened.program} has no fence and no locked instruction that can be weakened")
    chosen = sorted(sites, key=lambda site: (site[2] != "fence", site))
    for site, (count, said) in zip(chosen, at_once.map(judge, chosen)):
        path, function, _, statement = site
        place = f"{path} {function}: {statement}"
        known = [sentence for pattern, sentence in sentences if fnmatchcase(place, pattern)] + ["NOT NOTICED" if count else "not reached"]
        lines.append(f"{place}\n    {f'{said[0]}, schedule {said[1]}: {said[2]}' if said[0] else known[0]}")
        noticed += bool(said[0])
        explanations += not said[0] and len(known) > 1
        print(lines[-1], flush=True)
        head = (
            "# Fences and locked instructions of mm/ and kernel/core, each weakened and searched: tests/host/explore/fences.py\n"
            f"# {len(lines)} of {len(chosen)} places, {sum(site[2] == 'fence' for site in chosen)} of them fences; "
            f"noticed: {noticed}, explained: {explanations}\n"
        )
        if args.table:
            args.table.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    print(head, end="")
    if args.cases != "*":
        return 0
    unused = [pattern for pattern, _ in sentences if not any(fnmatchcase(line.partition("\n")[0], pattern) for line in lines)]
    if unused:
        print("fences.txt explains what is not there:", *unused, sep="\n")
    return 1 if unused or noticed + explanations < len(lines) else 0


if __name__ == "__main__":
    sys.exit(main())
