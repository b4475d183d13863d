"""Pinned skips: nothing new slips in, nothing old goes unnoticed."""

import pins
import pytest
from typed import case_names

PINS = pins.load("""
# comment
always  *-1cpu-*  kernel.call.busy  needs two CPUs
        kernel.call.idle
maybe   pvh-288*  -              QEMU 10 cannot be had: *
""")


def test_pins_cover_what_they_name_and_nothing_else():
    assert pins.expected(PINS, "bios-1cpu-64M", "kernel.call.busy", "needs two CPUs")
    assert pins.expected(PINS, "bios-1cpu-64M", "kernel.call.idle", "needs two CPUs")
    for skip in (("bios-1cpu-64M", "kernel.call.busy_too", "needs two CPUs"),
                 ("bios-2cpu-64M", "kernel.call.busy", "needs two CPUs"), ("bios-1cpu-64M", "kernel.lock.busy", "needs two CPUs"),
                 ("bios-1cpu-64M", "kernel.call.busy", "out of time")):  # fmt: skip
        assert not pins.expected(PINS, *skip)


def test_a_skip_that_vanished_is_noticed():
    assert [pin.case for pin in pins.vanished(PINS, "bios-1cpu-64M", [])] == ["kernel.call.busy", "kernel.call.idle"]
    assert [pin.case for pin in pins.vanished(PINS, "bios-1cpu-64M", [("kernel.call.busy", "needs two CPUs")])] == ["kernel.call.idle"]
    assert not pins.vanished(PINS, "pvh-288cpu-3G", []), "what depends on the host may vanish"


def test_the_real_file_names_cases_that_exist_once_each():
    """So no pin has a glob for a case, and a new skip needs a line of its own."""
    real = pins.load()
    assert {pin.case for pin in real} - {"-"} <= case_names()
    assert len(real) == len(set(real))
    with pytest.raises(ValueError):
        pins.load("always  *-1cpu-* kernel.call.*")
