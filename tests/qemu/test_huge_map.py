"""Huge mappings on whole machines: what a fault costs, counted; an end in order when no page is left; CPUs without 1 GiB pages."""

from dataclasses import replace

from guest import run
from machine import Machine
from test_payload import records

SECONDS = 90
COUNTED = Machine("pvh", 1, "512M", accel="icount", cmdline="bench=fault fault_bytes=64M")
FAULT_INSTRUCTIONS = 4000  # of a 2 MiB fault, besides clearing


def test_instructions_of_a_fault(kernel):
    outcome = run(COUNTED, kernel, SECONDS)
    assert (outcome.verdict, outcome.problem) == ("pass", ""), outcome.report()
    legs = [leg for leg in records(outcome.text, "fault") if leg["size"] == "2M"]
    assert {leg["mode"] for leg in legs} == {"page", "multi"}, outcome.report()
    for leg in legs:
        assert leg["faults"] == leg["pages"] == 32 and leg["unmap_rounds"] == 1, leg
        assert 0 < leg["besides_ns"] <= FAULT_INSTRUCTIONS, leg


def test_no_page_ends_the_run_in_order(kernel):
    outcome = run(Machine("pvh", 2, "256M", cmdline="payload=no-page"), kernel, SECONDS)
    assert outcome.verdict == "fail", outcome.report()
    assert "no page for the touch of" in outcome.text, outcome.report()


def test_cpus_without_1_gib_pages(kernel):
    machine = Machine("pvh", 4, "512M", cpu="max,-pdpe1gb", cmdline="test=mm.huge_map.*")
    outcome = run(machine, kernel, SECONDS)
    assert (outcome.verdict, outcome.problem) == ("pass", ""), outcome.report()
    outcome = run(replace(machine, cpu="max"), kernel, SECONDS)
    assert (outcome.verdict, outcome.problem) == ("pass", ""), outcome.report()
