"""Making 1 GiB pages at run time (S4): what each search reads, and what aged memory still gives.

What is read and moved is exact; of the times only the ratio that holds with a wide margin is required.
"""

import pytest
from guest import run
from machine import Machine
from test_payload import records

SECONDS = 180
MACHINE = Machine("pvh", 2, "7G", cmdline="bench=contig")
GIGA_PAGES = 1 << 18
MODES = ("vanilla", "skip", "strict", "index")


@pytest.fixture(scope="module")
def outcome(kernel):
    return run(MACHINE, kernel, SECONDS)


@pytest.fixture(scope="module")
def legs(outcome):
    found = {}
    for record in records(outcome.text, "contig"):
        found.setdefault((record["mode"], record["memory"]), record)  # one step: fewer than ten pages
    assert len(found) == 2 * len(MODES), outcome.report()
    return found


def test_verdict(outcome):
    assert (outcome.verdict, outcome.problem) == ("pass", ""), outcome.report()


def test_only_vanilla_reads_ever_more(legs):
    for memory in ("fresh", "aged"):
        pages = legs["vanilla", memory]["total"]
        assert pages >= 2
        assert legs["vanilla", memory]["scanned_pages"] >= pages * (pages + 1) // 2 * GIGA_PAGES
        for mode in ("skip", "strict"):
            assert legs[mode, memory]["scanned_pages"] < (legs[mode, memory]["total"] + 1) * GIGA_PAGES
        assert legs["index", memory]["scanned_pages"] == 0


def test_pages_are_found_in_aged_memory_and_contents_survive(legs):
    for mode in MODES:
        aged, fresh = legs[mode, "aged"], legs[mode, "fresh"]
        assert aged["verified"] == 1
        assert aged["migrated_pages"] >= 100 * aged["total"], "memory was not aged"
        assert fresh["migrated_pages"] == 0
        assert aged["total"] >= fresh["total"], "enough memory was free"


def test_the_index_pays(legs):
    assert 10 * legs["index", "fresh"]["ns_p50"] <= legs["skip", "fresh"]["ns_p50"]
