"""The rules by which Linux's kunit parser reads KTAP, as its documentation states them, and the complaints that the parser would make.

The rules are recursive, as in the documentation. A test is an optional version line, an optional `# Subtest:` header and a plan, that many
tests below it, and a result line of its own. The outermost test has no result. Any other line is a diagnostic and may stand anywhere.
Indentation has no meaning, but order has.

Source: "The Kernel Test Anything Protocol", version 1, Linux documentation, 2021-12; "kunit_tool", 2020, on parsing results.
"""

import re

VERSION = re.compile(r"^\s*KTAP version (\d+)$")
HEADER = re.compile(r"^\s*# Subtest: (.*)$")
PLAN = re.compile(r"^\s*1\.\.(\d+)$")
RESULT = re.compile(r"^\s*(?:not )?ok (\d+) (?:- )?([^#]*?)(?: # .*)?$")
SIGNIFICANT = (VERSION, HEADER, PLAN, RESULT)


class Reader:
    def __init__(self, lines):
        self.lines = [line for line in lines if any(rule.match(line) for rule in SIGNIFICANT)]
        first = next((i for i, line in enumerate(self.lines) if VERSION.match(line)), len(self.lines))
        self.lines, self.problems = self.lines[first:], []

    def take(self, rule):
        if self.lines and rule.match(self.lines[0]):
            return rule.match(self.lines.pop(0))
        return None

    def test(self, number):
        """One test and the tests below it. Number 0 is the outermost test."""
        version, header, plan = self.take(VERSION), self.take(HEADER), self.take(PLAN)
        if version and version[1] != "1":
            self.problems.append(f"KTAP version {version[1]}")
        if (version or header) and not plan:
            self.problems.append(f"no plan after {header[0].strip() if header else 'the version line'}")
        for child in range(1, int(plan[1]) + 1 if plan else 1):
            if not self.lines:
                self.problems.append(f"test {child} of {plan[1]} is missing")
                break
            self.test(child)
        if number:
            self.result(number, header)

    def result(self, number, header):
        result = self.take(RESULT)
        if not result:
            self.problems.append(f"test {number} has no result" + (f": {self.lines[0].strip()}" if self.lines else ""))
        elif int(result[1]) != number:
            self.problems.append(f"expected test {number}, found {result[1]}")
        elif header and header[1].strip() != result[2].strip():
            self.problems.append(f"subtest {header[1]} ends as {result[2]}")


def problems(lines):
    reader = Reader(lines)
    if not reader.lines:
        return ["no KTAP at all"]
    reader.test(0)
    return reader.problems + [f"left over: {line.strip()}" for line in reader.lines[:3]]
