"""Huge mappings on whole machines: what bench=fault compares, an orderly end when no page is left, CPUs without 1 GiB pages."""

from guest import run
from machine import Machine
from records import values_of as records

COUNTED = Machine("pvh", 1, "512M", accel="icount", cmdline='bench="fault bytes=16M runs=3"')


def test_ways_take_turns_and_change_one_thing(kernel):
    """Each round has every way once and begins with another one. The steps and the extents of a row use the same stores."""
    outcome = run(COUNTED, kernel).ended()
    legs = sorted((leg for leg in records(outcome.text, "fault") if leg["size"] == "2M"), key=lambda leg: leg["turn"])
    ways = {(leg["mode"], leg["insn"], leg["extent"]) for leg in legs}
    insns = {"erms", "orig", "rep", "nt"}
    assert ways == {(mode, insn, extent) for mode, extent in (("page", "4K"), ("multi", "32M")) for insn in insns} | {("multi", "default", "32M")}
    rounds = [legs[at : at + len(ways)] for at in range(0, len(legs), len(ways))]
    assert len(rounds) == 3, outcome.report()
    for number, legs_of in enumerate(rounds, 1):
        assert {(leg["mode"], leg["insn"], leg["extent"]) for leg in legs_of} == ways, number
        assert {leg["run"] for leg in legs_of} == {number}
    assert len({(legs_of[0]["mode"], legs_of[0]["insn"]) for legs_of in rounds}) == 3
    for insn in insns:
        steps, extents = (next(leg["ns"] for leg in legs if (leg["mode"], leg["insn"]) == (mode, insn)) for mode in ("page", "multi"))
        assert 0.8 < steps / extents < 2, (insn, steps, extents)


def test_no_page_ends_the_run_in_order(kernel):
    run(Machine("pvh", 2, "256M", cmdline="payload=no-page"), kernel).ended("fail").says("no page for the touch of")


def test_cpus_without_1_gib_pages(kernel):
    run(Machine("pvh", 4, "512M", cpu="max,-pdpe1gb", cmdline="test=mm.huge_map.*,program.area.*1g*"), kernel).ended()


def test_nodes_beyond_the_32nd(kernel):
    run(Machine("pvh", 2, "5G", nodes=36, cmdline="test=mm.huge_map.a_node_that_has_nothing*"), kernel).ended()
