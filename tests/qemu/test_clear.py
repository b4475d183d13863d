"""Clearing on CPU models with and without the features on which the choice depends, and with every instruction forced.

No emulated CPU has CLZERO, so forcing it must be refused and must leave the default.
"""

from dataclasses import replace

import pytest
from guest import run
from machine import Machine
from test_payload import records

SECONDS = 90
CASES = "arch.clear.*,mm.clear.*"
BASE = Machine("pvh", 2, "512M")
INSNS = ("erms", "orig", "rep", "nt")  # of the emulated CPU

# CPU model, word on the command line, and the words of the machine page for sizes below 256 KiB and beyond 32 MiB.
CHOICES = (
    ("max", "", "erms", "erms"),  # the model calls itself AMD's
    ("max,vendor=GenuineIntel", "", "erms", "nt"),
    ("max,-erms,-fsrm", "", "rep", "nt"),
    ("max,-pdpe1gb", "", "erms", "erms"),
    ("qemu64", "", "rep", "nt"),
    ("max,-erms", "strict=off clear_insn=erms", "rep", "nt"),  # refused
    ("max", "strict=off clear_insn=clzero", "erms", "erms"),  # refused
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


@pytest.mark.parametrize("insn,verdict", [("nt", "pass"), pytest.param("erms", "fail", marks=pytest.mark.proof)])
def test_a_default_that_is_far_behind_fails_the_benchmark(kernel, insn, verdict):
    """QEMU stores the bytes of a rep stosb one by one, which is always several times slower than storing words."""
    words = f"bench=clear clear_ms=60 clear_gate=250 clear_insn={insn}"
    outcome = run(replace(BASE, cmdline=words), kernel, SECONDS)
    assert (outcome.verdict, outcome.problem) == (verdict, ""), outcome.report()
    assert ("# FAILED: clearing 2M by default takes at least" in outcome.text) == (verdict == "fail"), outcome.report()


def test_what_is_cleared_ahead_is_shown_with_its_cost(kernel):
    """The rows before it run while nothing is cleared ahead; each page of the row `ahead` was cleared by an idle CPU, for a time."""
    words = "bench=fault fault_bytes=16M fault_size=2M fault_insn=erms fault_pieces=extents fault_runs=1 prezero=8"
    outcome = run(replace(BASE, cmdline=words), kernel, SECONDS)
    assert (outcome.verdict, outcome.problem) == ("pass", ""), outcome.report()
    ahead = records(outcome.text, "fault_ahead")
    assert [r["then"] for r in ahead] == ["nothing"] * 3 + ["regrown"] * 3, outcome.report()
    assert [(r["pages"], r["zeroed"], r["faults"]) for r in ahead] == [(8, 8, 8)] * 6, outcome.report()
    assert all(r["idle_ns"] > r["ns"] > 0 for r in ahead), "clearing takes longer than a touch that clears nothing"
    at_touch = min(r["ns"] for r in records(outcome.text, "fault") if r["cpus"] == 1)
    assert min(r["ns"] for r in ahead) < at_touch, outcome.report()


def test_extents_are_varied_with_one_instruction(kernel):
    """Each pair of columns uses the same instruction, and every record says what was varied."""
    outcome = run(replace(BASE, cmdline="bench=clear clear_ms=60"), kernel, SECONDS)
    assert (outcome.verdict, outcome.problem) == ("pass", ""), outcome.report()
    seen = {(r["mode"], r["insn"], r["extent"]) for r in records(outcome.text, "clear") if r["size"] == "2M"}
    assert {("page", insn, "4K") for insn in INSNS} | {("multi", insn, "32M") for insn in INSNS} <= seen
    took = {r["mode"]: r["ns"] for r in records(outcome.text, "clear") if (r["size"], r["insn"]) == ("2M", "erms")}
    assert took["page"] < 4 * took["multi"], "not the same instruction: stores of words are ten times faster here"
    steps = [(r["insn"], r["extent"]) for r in records(outcome.text, "clear_extent")]
    assert steps[:4] == [("erms", extent) for extent in ("4K", "32K", "256K", "whole")], steps
    first = next(line for line in outcome.lines if line.startswith("  2M "))
    assert first.split()[1] == "erms", first
