"""Pinned skips: nothing new slips in, nothing old goes unnoticed."""

import pins
import pytest
from typed import case_names

PINS = pins.load("""
# comment
always  *-1cpu-*  kernel.call.busy  needs two CPUs
        kernel.call.idle
maybe   pvh-288*  -              QEMU 10 cannot be had: *
maybe   *-64M     kernel.lock.busy  needs * MiB
maybe   !*node*   mm.node.other     needs two nodes
""")


def test_pins_cover_what_they_name_and_nothing_else():
    assert pins.expected(PINS, "bios-1cpu-64M", "kernel.call.busy", "needs two CPUs")
    assert pins.expected(PINS, "bios-1cpu-64M", "kernel.call.idle", "needs two CPUs")
    assert pins.expected(PINS, "pvh-8cpu-5G", "mm.node.other", "needs two nodes")
    for skip in (("pvh-8cpu-5G-2node", "mm.node.other", "needs two nodes"), ("bios-1cpu-64M", "kernel.call.busy_too", "needs two CPUs"),
                 ("bios-2cpu-64M", "kernel.call.busy", "needs two CPUs"), ("bios-1cpu-64M", "kernel.lock.busy", "needs two CPUs"),
                 ("bios-1cpu-64M", "kernel.call.busy", "out of time")):  # fmt: skip
        assert not pins.expected(PINS, *skip)


def test_a_skip_that_vanished_is_noticed():
    def gone(machine, *skips, ran=("kernel.call.busy", "kernel.call.idle", "-")):
        return [pin.case for pin in pins.vanished(PINS, machine, ran, skips)]

    assert gone("bios-1cpu-64M") == ["kernel.call.busy", "kernel.call.idle"]
    assert gone("bios-1cpu-64M", ("kernel.call.busy", "needs two CPUs")) == ["kernel.call.idle"]
    assert gone("bios-1cpu-64M", ran=["kernel.call.busy"]) == ["kernel.call.busy"], "a run without the other case"
    assert not gone("pvh-288cpu-3G"), "what depends on the host may vanish"


def test_a_skip_that_no_machine_shows_any_more_is_noticed():
    """Once each machine of make test has run that the pin covers, unless none of them has the case."""
    case, one, two = "kernel.lock.busy", "bios-1cpu-64M", "uefi-2cpu-64M"

    def gone(**ran):
        return [pin.case for pin in pins.never_shown(PINS, one, {one: ran["first"], two: ran["second"], "pvh-3cpu-12G": None})]

    assert gone(first={case: None}, second={case: None}) == gone(first={case: "out of time"}, second={}) == [case]
    assert gone(first={case: None}, second=None) == gone(first={}, second={}) == []
    assert gone(first={case: None}, second={case: "needs 4 MiB"}) == []
    assert not [*pins.never_shown(PINS, "pvh-3cpu-12G", {one: {case: None}})], "the pins of another machine"


def test_the_real_file_names_cases_that_exist_once_each():
    """So no pin has a glob for a case, and a new skip needs a line of its own."""
    real = pins.load()
    assert {pin.case for pin in real} - {"-"} <= case_names()
    assert len(real) == len(set(real))
    with pytest.raises(ValueError):
        pins.load("always  *-1cpu-* kernel.call.*")
