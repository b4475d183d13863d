#!/usr/bin/python3
"""Writes into README.md what the command of tests/report/readme.record printed: two tables, and two ratios of mode on, growing and in all,
in the text below them. test_docs.py compares.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RATIO = r"\d+\.\d\d \(\d+\.\d\d to \d+\.\d\d\)"


def shown(record):
    """The times of all modes, and the counts of those that need rounds."""
    tables = re.findall(r"^  mode +op .*\n(?:  .*\n)+", record, re.M)
    counts = [line for line in tables[1].splitlines(True) if not re.match("  (off|on) ", line)]
    return f"```\n{tables[0]}\n{''.join(counts)}```\n"


def filled(readme, record):
    """The page with the figures of the record."""
    above, _, rest = readme.partition("```\n")
    ratios = iter(re.findall(rf"^  on +(?:grow|\d).*?  ({RATIO}) ", record, re.M))
    return above + shown(record) + re.sub(RATIO, lambda _: next(ratios), rest.partition("```\n")[2])


if __name__ == "__main__":
    page = ROOT / "README.md"
    page.write_text(filled(page.read_text(encoding="utf-8"), (ROOT / "tests/report/readme.record").read_text(encoding="utf-8")), encoding="utf-8")
