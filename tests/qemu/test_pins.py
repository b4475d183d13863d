"""Pinned skips: nothing new slips in, nothing old goes unnoticed."""

import machine
import pins
import pytest

TEXT = """
# comment
always  *-1cpu-*  kernel.call.*  needs two CPUs
maybe   pvh-288*  -              QEMU 10 cannot be had: *
"""
PINS = pins.load(TEXT)


def test_a_pinned_skip_is_expected():
    assert pins.expected(PINS, "bios-1cpu-64M", "kernel.call.busy", "needs two CPUs")


@pytest.mark.parametrize(
    "skip",
    [
        ("bios-2cpu-64M", "kernel.call.busy", "needs two CPUs"),
        ("bios-1cpu-64M", "kernel.lock.busy", "needs two CPUs"),
        ("bios-1cpu-64M", "kernel.call.busy", "out of time"),
    ],
)
def test_any_other_is_not(skip):
    assert not pins.expected(PINS, *skip)


def test_a_skip_that_vanished_is_noticed():
    assert [pin.case for pin in pins.vanished(PINS, "bios-1cpu-64M", [])] == ["kernel.call.*"]
    assert not pins.vanished(PINS, "bios-1cpu-64M", [("kernel.call.busy", "needs two CPUs")])


def test_what_depends_on_the_host_may_vanish():
    assert not pins.vanished(PINS, "pvh-288cpu-3G", [])


def test_a_malformed_line_is_refused():
    with pytest.raises(ValueError):
        pins.load("always  *-1cpu-* kernel.call.*")


def test_the_real_file_is_well_formed():
    assert pins.load()


def test_a_loader_that_needs_more_memory_is_named(monkeypatch):
    """Newer GRUB takes 32 MiB at once. Such a machine is not made, and the resulting skip is a pinned one."""
    small = machine.Machine("uefi", 2, "64M")
    monkeypatch.setattr(machine, "version_of", lambda tool: (2, 12))
    with pytest.raises(machine.Unavailable) as why:
        machine.boot_args(small, "kernel", "iso")
    assert pins.expected(pins.load(), small.name, "-", str(why.value))
    monkeypatch.setattr(machine, "version_of", lambda tool: (2, 6))
    assert "iso" in machine.boot_args(small, "kernel", "iso")
