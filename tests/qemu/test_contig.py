"""Making 1 GiB pages at run time (the contiguous-range series): the struct pages that each search reads, and the pages that aged memory
still gives.

The counts of reads and moves are exact.
"""

from dataclasses import replace

import pytest
from guest import run
from machine import Machine
from records import values_of as records

SECONDS = 180
MACHINE = Machine("pvh", 2, "7G", cmdline="bench=contig")
GIGA_PAGES = 1 << 18
AGED_PAGES = 1024  # in use in each GiB
MODES = ("vanilla", "revert", "skip", "strict", "step", "index")


@pytest.fixture(scope="module")
def outcome(kernel):
    return run(MACHINE, kernel, SECONDS).ended()


@pytest.fixture(scope="module")
def legs(outcome):
    found = {}
    for record in records(outcome.text, "contig"):
        found.setdefault((record["mode"], record["memory"]), record)  # one step: fewer than ten pages
    assert len(found) == 3 * len(MODES) - 1, outcome.report()
    assert ("revert", "aged") not in found, "every GiB holds a page in use"
    return found


@pytest.fixture(scope="module")
def columns(outcome):
    return {(r["mode"], r["memory"]): r for r in records(outcome.text, "contig_table")}


def test_only_vanilla_reads_ever_more(legs):
    for memory in ("fresh", "booted", "aged"):
        pages = legs["vanilla", memory]["total"]
        assert pages >= 2
        assert legs["vanilla", memory]["scanned_pages"] >= pages * (pages + 1) // 2 * GIGA_PAGES
        for mode in ("revert", "skip", "strict"):
            if (mode, memory) in legs and memory != "booted":
                assert legs[mode, memory]["scanned_pages"] < (legs[mode, memory]["total"] + 1) * GIGA_PAGES
        assert legs["index", memory]["scanned_pages"] == 0


def test_only_revert_leaves_a_range_at_a_page_in_use(legs):
    """In booted memory the others read a whole GiB more for each page, and isolation refuses it. In fresh memory all of them read as much."""
    for mode in ("skip", "strict", "revert"):
        booted, fresh = legs[mode, "booted"], legs[mode, "fresh"]
        more = 0 if mode == "revert" else booted["total"]
        assert booted["candidates"] == booted["total"] + more
        assert more * GIGA_PAGES < booted["scanned_pages"] - booted["total"] * GIGA_PAGES < (more + 1) * GIGA_PAGES
        assert fresh["scanned_pages"] == legs["revert", "fresh"]["scanned_pages"]


def test_pages_are_found_in_aged_memory_and_contents_survive(legs):
    for mode in MODES:
        if mode == "revert":
            continue
        aged, fresh = legs[mode, "aged"], legs[mode, "fresh"]
        assert aged["verified"] == 1
        assert aged["migrated_pages"] >= 100 * aged["total"], "memory was not aged"
        assert fresh["migrated_pages"] == 0
        assert aged["total"] >= fresh["total"], "enough memory was free"


def test_step_reads_what_is_free_in_runs(legs):
    """The search reads 256 runs of 4 MiB in a free GiB, one struct page for each page before it, and the memory between whole GiB."""
    fresh = legs["step", "fresh"]
    assert fresh["scanned_pages"] < (fresh["total"] + 1) * 512
    assert legs["step", "aged"]["scanned_pages"] * 10 < legs["skip", "aged"]["scanned_pages"]


def test_every_column_of_the_table(columns, legs):
    for (mode, memory), column in columns.items():
        assert column["pages"] == legs[mode, memory]["total"] and column["batches"] == 1
        assert 0 < column["ns_system"] <= column["ns_elapsed"]
        assert column["ns_p0"] == column["ns_p1"] == column["ns_p100"] == column["ns_mean"]
        assert column["references"] == (0 if mode in ("step", "index") else column["pages"] * GIGA_PAGES)
        assert (column["copy_ns"] > 0) == (memory == "aged")


def test_ours_moves_no_page_twice(kernel, columns):
    """Pages in the way of a 1 GiB page gather in a place where they stay. Where memory is placed by block, a search by the order of addresses
    meets them again."""
    words = 'gigablock=off bench="contig memory=aged"'
    text = run(replace(MACHINE, cmdline=words), kernel, SECONDS).ended().text
    step, ours = (next(r for r in records(text, "contig_table") if r["mode"] == mode) for mode in ("step", "index"))
    assert ours["pages"] >= step["pages"]
    assert ours["migrated_pages"] < step["migrated_pages"]
    for column in (ours, columns["index", "aged"]):
        assert column["migrated_pages"] == column["pages"] * AGED_PAGES, column