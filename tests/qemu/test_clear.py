"""Clearing on CPU models with and without the features on which the choice depends, and with an instruction forced. The rule itself, for
each kind of CPU: arch.clear.the_rule_knows_each_kind_of_cpu.

No emulated CPU has CLZERO, so forcing it must be refused and must leave the default.
"""

from dataclasses import replace

import pytest
from guest import run
from machine import Machine
from records import values_of as records

CASES = "arch.clear.*,mm.clear.*"
BASE = Machine("pvh", 2, "512M")
INSNS = ("erms", "orig", "rep", "nt")  # of the emulated CPU

# CPU model, word on the command line, and the words of the machine page for sizes below 256 KiB and beyond 32 MiB.
CHOICES = (
    ("max", "", "erms", "erms"),  # the model calls itself AMD's
    ("max,vendor=GenuineIntel", "", "erms", "nt"),
    ("Westmere", "", "rep", "nt"),  # it has AES and no XSAVE
    ("max,-erms", "end.strict=off clear.insn=erms", "rep", "nt"),  # refused
    ("max", "end.strict=off clear.insn=clzero", "erms", "erms"),  # refused
    ("max", "clear.insn=nt", "nt", "nt"),
)


@pytest.mark.parametrize("cpu,word,small,giant", CHOICES, ids=[f"{c[0]}-{c[1] or 'default'}" for c in CHOICES])
def test_choice(kernel, cpu, word, small, giant):
    outcome = run(replace(BASE, cpu=cpu, cmdline=f"{word} test={CASES}"), kernel).ended()
    line = next(line for line in outcome.lines if line.startswith("  clear "))
    assert f": {small} below 256 KiB," in line and line.endswith(f", {giant} beyond"), line


@pytest.mark.parametrize("insn,verdict", [("nt", "pass"), pytest.param("erms", "fail", marks=pytest.mark.proof)])
def test_a_default_that_is_far_behind_fails_the_benchmark(kernel, insn, verdict):
    """QEMU stores the bytes of a rep stosb one by one, which is always several times slower than storing words."""
    words = f'bench="clear ms=60 gate=250" clear.insn={insn}'
    outcome = run(replace(BASE, cmdline=words), kernel).ended(verdict)
    assert ("# FAILED: clearing 2M by default takes at least" in outcome.text) == (verdict == "fail"), outcome.report()


def test_extents_are_varied_with_one_instruction(kernel):
    """Each pair of columns uses the same instruction, and every record says what was varied."""
    outcome = run(replace(BASE, accel="icount", cmdline='bench="clear ms=1"'), kernel).ended()
    seen = {(r["mode"], r["insn"], r["extent"]) for r in records(outcome.text, "clear") if r["size"] == "2M"}
    assert {("page", insn, "4K") for insn in INSNS} | {("multi", insn, "32M") for insn in INSNS} <= seen
    took = {r["mode"]: r["ns"] for r in records(outcome.text, "clear") if (r["size"], r["insn"]) == ("2M", "erms")}
    assert took["page"] < 1.1 * took["multi"], "not the same instruction: by words it takes a sixth of the instructions"
    steps = [(r["insn"], r["extent"]) for r in records(outcome.text, "clear_extent")]
    assert steps[:4] == [("erms", extent) for extent in ("4K", "32K", "256K", "whole")], steps
    first = next(line for line in outcome.lines if line.startswith("  2M "))
    assert first.split()[1] == "erms", first
