#!/usr/bin/env python3
"""Searches every concurrent case: one in which two CPUs have work at the same time.

    tests/host/explore/search.py --build build --schedules 1000 [--strategies pct2,pct3] [--select 'mm.pcp.*'] [--cost MS] [--seconds S]
        [--table FILE]

Which cases these are is found out by one run of each. As many are searched at a time as there are CPUs. With --seconds, a case gets fewer
schedules if its share of the time would not do for all. How long a schedule takes is estimated from counts, alike on every host. What was
searched is kept under BUILD/explore, by case and strategy, and is not searched again while the program is the same, so a search that was
interrupted goes on. Exit status: 1 if there is a finding, or if a case was not searched for any reason that is not expected.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

ROW = re.compile(
    r"^(?P<case>\S+\.\S+) +(?P<schedules>\d+) +(?P<distinct>\d+) +(?P<points>\d+) +(?P<pages>\d+) +(?P<cpus>\d+) +(?P<decisions>\d+) +"
    r"(?P<findings>\d+) +(?P<seconds>[\d.]+)  (?P<hash>[0-9a-f]{16}) *(?P<note>.*)$",
    re.MULTILINE,
)
IN_TURN, DEPTHS = 3, 4  # strategy "all": every third schedule is one of PCT, with these depths in turn (main.c)
NS_PER_SCHEDULE, NS_PER_POINT, NS_PER_PAGE = 800_000, 150, 2000  # about, on a host of 2025
LEAST = 4  # schedules, however long one takes
# The seeded mistakes and the litmus tests are cases of the explorer; tests/qemu/test_explore.py runs them.
# The other one compares spans of time, and the explorer's clock counts points: a store's microsecond passes before its simulation begins.
LEFT_OUT = ("host.seeded.*", "host.litmus.*", "host.simulate.time_of_stores_and_of_nothing_else_is_counted")
# One schedule of these has more points than the explorer allows: thousands of programs are loaded.
TOO_LONG = ("host.load.hostile_programs_change_no_table_of_the_kernel",)
# 25 ms a schedule, in which the host maps and unmaps thousands of pages. Searched if long cases are.
MAPS_MUCH = ("mm.gate.frames_wait_for_quiet_cpus_until_they_are_short",)
POINTS_PER_MS = 12_500  # that are looked at of a case, if only short ones are wanted
LATE = 3600  # seconds, for all schedules of a case


def rows_of(text):
    return {row["case"]: {key: int(value) if value.isdigit() and key != "hash" else value for key, value in row.groupdict().items()}
            for row in ROW.finditer(text)}


class Search:
    def __init__(self, build, seed):
        self.program, self.kept = build / "host/explore/ashlar-host", build / "explore"
        self.seed = seed
        self.key = hashlib.sha256(self.program.read_bytes()).hexdigest()[:16]
        self.kept.mkdir(parents=True, exist_ok=True)

    def remembered(self, name, key, find, is_kept=lambda found: True):
        """What find() says, or what it said before of the same program and key."""
        file = self.kept / f"{name}.found"
        if file.exists() and (known := json.loads(file.read_text(encoding="utf-8")))[0] == [self.key, *key]:
            return known[1]
        found = find()
        if is_kept(found):
            file.write_text(json.dumps([[self.key, *key], found]), encoding="utf-8")
        return found

    def run(self, case, seconds, *words):
        """What the explorer printed of a case, and its exit status. Each schedule may take `seconds`, the whole search LATE."""
        argv = [self.program, "-t", str(seconds), *words, case]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False, timeout=LATE)
        except subprocess.TimeoutExpired:
            return f"# FINDING {case}: schedule 0: not done after {LATE} s\n", 1
        return done.stdout, done.returncode

    def explore(self, case, schedules, strategy="all", *more):
        """(row, text, status): of this case, what was printed and how it ended. What ended badly without a row is not remembered."""

        def find():
            text, status = self.run(case, 600, "-s", str(self.seed), "-S", str(schedules), "-p", strategy, *more)
            if row := rows_of(text).get(case):
                row["strategy"] = strategy
            return row, text, status

        return self.remembered(f"{case}.{strategy}.{schedules}", [self.seed], find, lambda found: found[0] or found[2] == 0)

    def cases(self, select):
        done = subprocess.run([self.program, "-l", select], capture_output=True, text=True, check=True)
        return [case for case in done.stdout.split() if not any(fnmatchcase(case, glob) for glob in LEFT_OUT)]


def has_failed(case, row, status):
    """A case without a row and with status 0 ended before it had a choice."""
    if not row:
        return status != 0
    return row["findings"] > 0 or (row["note"] == "too long" and case not in TOO_LONG)


def cost_of(row):
    """About how many ns a schedule takes; from counts, so it is the same on every host."""
    return NS_PER_SCHEDULE + NS_PER_POINT * row["points"] + NS_PER_PAGE * row["pages"]


def affordable(rows, schedules, seconds):
    """{case: schedules}: all of them, or as many as an equal share of the time allows."""
    cost = {case: cost_of(row) for case, row in rows.items()}
    left, share = seconds * 1e9, {}
    for n, case in enumerate(sorted(cost, key=cost.get)):  # what the short ones leave is for the long ones
        share[case] = max(LEAST, min(schedules, int(left / (len(cost) - n) / cost[case])))
        left = max(0, left - share[case] * cost[case])
    return share


def depth_covered(row):
    """The largest depth for which the schedules of PCT meet any one bug with a probability of 95%: 1/(n k^(d-1)) each. 0: there are none."""
    name, most = row["strategy"][:3], int(row["strategy"][3:] or DEPTHS)
    runs = {"pct": row["schedules"], "all": row["schedules"] // IN_TURN}.get(name, 0) // (1 if row["strategy"][3:] else DEPTHS)
    covered = [d for d in range(1, most + 1) if runs >= 3 * row["cpus"] * max(row["decisions"], 1) ** (d - 1)]
    return max(covered, default=0)


def table(rows, searches, key):
    lines = [
        "# Schedules of concurrent cases, written by tests/host/explore/search.py",
        f"# program {key}: {len(rows)} of {searches} searches, {sum(row['schedules'] for row in rows)} schedules, "
        f"{sum(row['distinct'] for row in rows)} distinct, {sum(row['findings'] for row in rows)} findings",
        "# points of a schedule (mean); s: of one CPU; n: CPUs with work; k: decisions of a schedule (most); depth: of bugs that PCT meets at "
        "95% or more",
        f"{'case':80} strategy schedules distinct    points      s findings  n         k depth",
    ]
    for row in rows:
        lines.append(f"{row['case']:80} {row['strategy']:8} {row['schedules']:9} {row['distinct']:8} {row['points']:9} {row['seconds']:>6} "
                     f"{row['findings']:8} {row['cpus']:2} {row['decisions']:9} {depth_covered(row):5}  {row['note']}".rstrip())
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description="Search every concurrent case.")
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--select", default="*", help="only these cases")
    parser.add_argument("--schedules", type=int, default=1000, help="of each case and strategy, at most")
    parser.add_argument("--strategies", default="all", help="names of -p (main.c)")
    parser.add_argument("--cost", type=float, default=1e9, help="only cases of which a schedule takes so many ms")
    parser.add_argument("--seconds", type=float, default=0, help="of all CPUs together; 0: no limit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--table", type=Path, help="write the table to this file")
    args = parser.parse_args()

    search, at_once = Search(args.build, args.seed), ThreadPoolExecutor(os.cpu_count())
    cases = search.cases(args.select)
    if not cases:
        sys.exit(f"no case matches {args.select}")
    concurrent, found, failed = {}, [], False
    short = ("-x", str(int(POINTS_PER_MS * args.cost))) if args.cost < 1e9 else ()
    for case, (row, text, status) in zip(cases, at_once.map(lambda case: search.explore(case, 1, "all", *short), cases)):
        if has_failed(case, row, status) and not (short and row and row["note"] == "too long"):
            failed = True
            print(f"{case}: the first schedule failed, status {status}\n{text}", flush=True)
        elif row and row["cpus"] > 1 and not row["note"] and cost_of(row) <= args.cost * 1e6 and not (short and case in MAPS_MUCH):
            concurrent[case] = row
    if not concurrent:
        sys.exit(f"none of the cases that match {args.select} is concurrent")
    strategies = args.strategies.split(",")
    share = affordable(concurrent, args.schedules, args.seconds / len(strategies) or 1e9)
    searches = [(case, share[case], strategy) for case in share for strategy in strategies]
    for (case, _, _), (row, text, status) in zip(searches, at_once.map(lambda one: search.explore(*one), searches)):
        if not row or has_failed(case, row, status):
            failed = True
            print(text if row else f"{case}: the explorer ended without a row\n{text}", flush=True)
        found += [row] if row else []
        lines = table(sorted(found, key=lambda row: (row["case"], row["strategy"])), len(searches), search.key)
        if args.table:
            args.table.write_text(lines, encoding="utf-8")
    print(lines, end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
