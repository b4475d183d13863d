"""Reads KTAP as the kernel and the hosted runner print it: suites at the top, their cases nested by two spaces.

Lines that are not KTAP (the log, tables, records) may stand anywhere between. A case is named "suite.case". problems() collects the
promises that the text does not keep (plans, numbers, the result of a suite), because a guest that dies in the middle must not look like a
pass. Where only the results of suites are known, as from QR codes (kernel/console/results.h), each suite counts as a case.

Source: "The Kernel Test Anything Protocol", version 1, Linux documentation, 2021-12.
"""

import re
from dataclasses import dataclass

PLAN = re.compile(r"^( *)1\.\.(\d+)$")
RESULT = re.compile(r"^( *)(not ok|ok) (\d+)(?: -)?(?: ([^#]*?))?(?: ?# ?(.*))?$")
DIAGNOSTIC_LINES = 60


@dataclass
class Case:
    name: str
    outcome: str  # passed, failed, skipped
    detail: str  # the reason of a failure or of a skip
    ns: int = 0


class Ktap:
    """A reader of lines: feed() takes a line and returns a case when it is finished."""

    def __init__(self, suites_only=False):
        self.suites_only = suites_only
        self.cases = []
        self.suite = None
        self.planned = {0: None, 2: None}
        self.seen = {0: 0, 2: 0}
        self.suite_failures = 0
        self.broken = []
        self.since = []
        self.ns = 0

    def feed(self, line):
        line = line.rstrip()
        subtest = re.match(r"^ +# Subtest: (\S+)$", line)
        if subtest:
            self._suite_begins(subtest.group(1))
        elif PLAN.match(line):
            self._plan(PLAN.match(line))
        elif RESULT.match(line):
            return self._result(RESULT.match(line))
        elif re.match(r"^ +# time_ns (\d+)$", line):
            self.ns = int(line.split()[-1])
        else:
            self.since.append(line)
            del self.since[:-DIAGNOSTIC_LINES]
        return None

    def _suite_begins(self, name):
        if self.suite:
            self.broken.append(f"suite {self.suite} has no result")
        self.suite, self.suite_failures = name, 0
        self.planned[2], self.seen[2] = None, 0
        self.since = []

    def _plan(self, match):
        depth = len(match.group(1))
        if depth in self.planned:
            self.planned[depth] = int(match.group(2))

    def _result(self, match):
        depth, word, number, name, directive = len(match[1]), match[2], int(match[3]), match[4] or "", match[5] or ""
        if depth not in self.seen or (self.suites_only and depth > 0):
            self.since.append(match[0])
            return None
        self.seen[depth] += 1
        if number != self.seen[depth]:
            self.broken.append(f"{name}: numbered {number}, expected {self.seen[depth]}")
            self.seen[depth] = number
        if depth == 0 and not self.suites_only:
            return self._suite_ends(name, word)
        return self._case_ends(name, word, directive)

    def _case_ends(self, name, word, directive):
        full = f"{self.suite}.{name}" if self.suite else name
        kind = directive.split(" ", 1)[0].upper()
        if word == "not ok" or kind in ("TIMEOUT", "ERROR"):
            outcome, detail = "failed", "\n".join(self.since + ([directive] if directive else []))
            self.suite_failures += 1
        elif kind in ("SKIP", "XFAIL"):
            outcome, detail = "skipped", directive.partition(" ")[2]
        else:
            outcome, detail = "passed", ""
        case = Case(full, outcome, detail, self.ns)
        self.cases.append(case)
        self.since, self.ns = [], 0
        return case

    def _suite_ends(self, name, word):
        if self.suite != name:
            self.broken.append(f"result of suite {name} while {self.suite} was running")
        if self.planned[2] != self.seen[2]:
            self.broken.append(f"suite {name}: {self.seen[2]} of {self.planned[2]} cases have a result")
        if (word == "not ok") != (self.suite_failures > 0):
            self.broken.append(f"suite {name} says '{word}' with {self.suite_failures} failed cases")
        self.suite = None

    def problems(self):
        """The promises that were not kept, after the text has ended."""
        found = list(self.broken)
        if self.planned[0] is None:
            found.append("no plan: no test ran")
        elif self.suite:
            found.append(f"ended inside suite {self.suite}, after {self.seen[2]} of {self.planned[2]} cases")
        elif self.planned[0] != self.seen[0]:
            found.append(f"{self.seen[0]} of {self.planned[0]} suites have a result")
        return found
