"""Clearing on CPU models with and without what the choice depends on, and with every instruction forced.

CLZERO is in no emulated CPU: forcing it must be refused and leave the default.
"""

from dataclasses import replace

import pytest
from guest import run
from machine import Machine

SECONDS = 90
CASES = "arch.clear.*,mm.clear.*"
BASE = Machine("pvh", 2, "512M")

# CPU model, word on the command line, what the machine page must say below 256 KiB and beyond 32 MiB.
CHOICES = (
    ("max", "", "erms", "erms"),  # it calls itself AMD's
    ("max,vendor=GenuineIntel", "", "erms", "nt"),
    ("max,-erms,-fsrm", "", "rep", "nt"),
    ("max,-pdpe1gb", "", "erms", "erms"),
    ("qemu64", "", "rep", "nt"),
    ("max,-erms", "clear_insn=erms", "rep", "nt"),  # refused
    ("max", "clear_insn=clzero", "erms", "erms"),  # refused
    ("max", "clear_insn=orig", "orig", "orig"),
    ("max", "clear_insn=rep", "rep", "rep"),
    ("max", "clear_insn=nt", "nt", "nt"),
)


@pytest.mark.parametrize("cpu,word,small,giant", CHOICES, ids=[f"{c[0]}-{c[1] or 'default'}" for c in CHOICES])
def test_choice(kernel, cpu, word, small, giant):
    outcome = run(replace(BASE, cpu=cpu, cmdline=f"{word} test={CASES}"), kernel, SECONDS)
    assert (outcome.verdict, outcome.problem) == ("pass", ""), outcome.report()
    line = next(line for line in outcome.lines if line.startswith("  clear "))
    assert f": {small} below 256 KiB," in line and line.endswith(f", {giant} beyond"), line


def test_calibration(kernel):
    outcome = run(replace(BASE, cmdline="clear_calibrate=on test=mm.clear.*"), kernel, SECONDS)
    assert (outcome.verdict, outcome.problem) == ("pass", ""), outcome.report()
    for size in ("small", "large"):
        assert any(line.startswith(f"  clear    {size}: ") for line in outcome.lines), outcome.report()
