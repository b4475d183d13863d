"""The end of a program: pages and work that it leaves behind make its run fail and are named. tests/bench/leaks.c has the programs."""

import re

import pytest
from guest import run
from machine import Machine

# Program, the words that the kernel must print about it, and the functions that debug.page_owner=on must name.
LEFT = (
    ("leak-page", [r"11 frames are in use"], {"take_pages"}),
    ("leak-huge", [r"1538 frames are in use", r"huge mappings hold 0 pages of 4 KiB, 3 of 2 MiB"], {"bring_huge", "huge_map_with"}),
    ("leak-map", [r"1 frames are in use"], {"huge_map_with"}),
    ("leak-pool", [r"1024 frames are in use", r"pool of 2 MiB pages has 2 pages in use", r"3 pages of pools are promised"], {"take_from_pool"}),
    ("leak-work", [r"CPU 1 still runs serve_for_ever\(\)"], set()),
)


def holders(outcome):
    return set(re.findall(r"^  # owner .* (\w+)[\w.]*\+0x", outcome.text, re.M))


def boot(kernel, cmdline, verdict="pass"):
    return run(Machine("pvh", 2, "512M", cmdline=cmdline), kernel).ended(verdict)


@pytest.mark.parametrize("name, said, named", LEFT, ids=lambda value: value if isinstance(value, str) else "")
def test_a_program_that_leaves_something_fails_and_it_is_named(kernel, name, said, named):
    outcome = boot(kernel, f"payload={name} debug.page_owner=on", "fail").says("# totals pass:1 fail:0", *said)
    assert named <= holders(outcome), outcome.report()
    assert "end.leaks=ok would accept what the program" in outcome.text and "backtrace" not in outcome.text, outcome.report()


def test_without_page_owner_the_way_to_the_holders_is_named(kernel):
    assert not holders(boot(kernel, "payload=leak-page", "fail").says("debug.page_owner=on would name the holders"))


def test_a_program_that_means_it_passes(kernel):
    assert holders(boot(kernel, "payload=leak-pool debug.page_owner=on end.leaks=ok")) == {"take_from_pool"}
    boot(kernel, "payload=leak-work end.leaks=ok").says(r"CPU 1 still runs serve_for_ever\(\)")


def test_a_program_that_gives_all_back_passes(kernel):
    """Free pages of a pool that the program leaves grown do not count as its pages, and the page tables of its mappings belong to the
    kernel."""
    outcome = boot(kernel, "payload=leak-none debug.page_owner=on")
    assert "leaks:" not in outcome.text, outcome.report()


def test_what_the_monitor_still_has_fails_its_session(kernel):
    boot(kernel, 'run="page alloc 3 count=2; map 4M 2M; pool 2M 8"', "fail").says(r"leaks: 1042 frames are in use")
    boot(kernel, 'run="page alloc 3 count=2; page free; map 4M 2M; map unmap; pool 2M 8"')
