"""The models of tests/model: spin finds no error in them and every bug planted in them, and the hosted build obeys them. Mutants of
flush.steps-obey break its rules."""

import re
import sys

import patience
import pytest
from machine import ROOT

MODELS = ROOT / "tests/model"
MODEL_SECONDS, CASE_SECONDS = 900, 200

# Cases in which CPUs compete. Each has at least these events, whichever CPU is first, which proves that its trace shows something. Where CPUs
# compete for blocks, they are those of the first pages that are made.
TRACED = {
    "kernel.shootdown.concurrent_initiators_all_return": {"round_skipping": 10, "round_ranged": 10, "done": 20},
    "kernel.shootdown.concurrent_initiators_with_interrupts_off_all_return": {"round_all": 8, "publish": 17},
    "kernel.shootdown.idle_cpus_are_skipped_and_flush_when_they_wake": {"awake": 1, "idle": 1},
    "mm.giga.batched_needs_two_rounds_and_one": {"give": 4096, "tag": 128, "round_all": 2},
    "mm.hvo.all_cpus_split_and_share_at_once": {"give": 7, "pte": 7, "reused": 1, "settled": 1},
    "mm.hvo.the_pool_gives_a_page_out_after_its_round": {"settled": 1},
    "mm.hvo.huge_blocks_become_bare_in_one_round": {"state": 60, "pte": 100, "done": 1},
    "mm.pool.all_cpus_resize_it_with_hvo_on": {"state": 50, "settled": 1},
    "mm.pool.all_cpus_resize_it_batched": {"round_all": 2, "pte": 28, "give": 28},
    "mm.section.closed_it_leaves_no_trace_and_takes_one_round": {"table": 1, "round_all": 1, "done": 1},
}

# Rounds that may wait serve many turns at once. Without waiting, each turn has its own round.
OPTIONS = {"mm.hvo.all_cpus_split_and_share_at_once": "hvo.defer=off"}


def test_spin(tmp_path):
    """Search the correct models exhaustively, but for those with millions of states, and find a bug planted in each (make test WHAT=models does all)."""
    argv = [sys.executable, str(MODELS / "run.py"), "--build", str(tmp_path), "--quick"]
    done = patience.run(argv, MODEL_SECONDS)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert re.search(r"^[1-9]\d* passed, 0 failed, 0 skipped$", done.stdout, re.M), done.stdout


@pytest.mark.parametrize("case", TRACED, ids=lambda case: case.split(".", 1)[1])
def test_replay(case, build, tmp_path):
    """Whether the case passes is the matter of test_host.py: mutants that break a rule must be noticed by their traces."""
    argv = [build / "host/asan/ashlar-host", "-c", "4", "-m", "3G", "-k", OPTIONS.get(case, ""), "-e", tmp_path / "trace", case]
    ran = patience.run(argv, CASE_SECONDS)
    argv = [sys.executable, MODELS / "replay.py", tmp_path / "trace"]
    checked = patience.run(argv, CASE_SECONDS)
    assert checked.returncode == 0, ran.stdout[-3000:] + checked.stdout[-4000:]
    seen = {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", checked.stdout)}
    missing = {name: n for name, n in TRACED[case].items() if seen.get(name, 0) < n}
    assert not missing, f"the trace shows too little: {seen}, wanted at least {missing}"
