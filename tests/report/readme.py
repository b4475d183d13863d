#!/usr/bin/python3
"""Writes into README.md what the command of tests/report/readme.record printed: two tables, and two ratios of mode on, growing and in all,
in the text below them. Draws its picture, readme.svg, from the first table. test_docs.py compares both.
"""

import math
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RATIO = r"\d+\.\d\d \(\d+\.\d\d to \d+\.\d\d\)"
LEFT, DECADE, POWERS, ROW = 150, 90, range(-1, 5), 24
STYLE = "svg{color:#1c2024;font:13px Verdana,sans-serif}text{fill:currentColor}@media(prefers-color-scheme:dark){svg{color:#e3e6e9}}"
COLOUR = {"unbatched": "#d9534f", "batched": "#e07b00", "on": "#3b82d0"}


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


def at(ratio):
    return round(LEFT + DECADE * (math.log10(float(ratio)) - POWERS[0]), 1)


def row(y, mode, op, ratio, low, high, published):
    """A dot on the bar from the lowest run to the highest, and a circle where Linux is on hardware."""
    yield f'<text x="8" y="{y + 5}">{mode}: {op}</text><circle cx="{at(ratio)}" cy="{y}" r="5" fill="{COLOUR[mode]}"/>'
    yield f'<path d="M{at(low)} {y}H{at(high)}" stroke="{COLOUR[mode]}" stroke-width="3"/>'
    if published != "-":
        yield f'<circle cx="{at(published)}" cy="{y}" r="5" fill="none" stroke="currentColor"/>'


def picture(record):
    """The column mode:off of the times, over a logarithmic scale."""
    rows = re.findall(rf"^  ({'|'.join(COLOUR)}) +(\w+) .*  ([\d.]+) \(([\d.]+) to ([\d.]+)\) +([\d.]+|-)  ", shown(record), re.M)
    bottom = ROW * (len(rows) + 1)
    lines = [line for number, cells in enumerate(rows, 1) for line in row(ROW * number, *cells)]
    for power in POWERS:
        x, ink = at(10.0**power), "currentColor" if power == 0 else "#8c949c66"
        lines.append(f'<path d="M{x} 8V{bottom}" stroke="{ink}"/><text x="{x}" y="{bottom + 16}" text-anchor="middle">{10.0**power:,g}</text>')
    lines.append(f'<text x="{LEFT}" y="{bottom + 36}">time per page : that of off; bars: all runs; circles: Linux, published</text>')
    size = f"0 0 {LEFT + DECADE * (len(POWERS) - 1) + 40} {bottom + 44}"
    return "\n".join([f'<svg role="img" xmlns="http://www.w3.org/2000/svg" viewBox="{size}"><style>{STYLE}</style>', *lines, "</svg>\n"])


if __name__ == "__main__":
    page, text = ROOT / "README.md", (ROOT / "tests/report/readme.record").read_text(encoding="utf-8")
    page.write_text(filled(page.read_text(encoding="utf-8"), text), encoding="utf-8")
    (ROOT / "tests/report/readme.svg").write_text(picture(text), encoding="utf-8")
