"""The models of tests/model: spin finds no error in them and every bug planted in them, and the hosted build obeys them."""

import re
import subprocess
import sys

import pytest
from machine import ROOT
from mutants import Tree

MODELS = ROOT / "tests/model"
MODEL_SECONDS, CASE_SECONDS = 900, 200

# Cases in which CPUs compete. Each must have at least these events, which proves that its trace shows something.
TRACED = {
    "kernel.shootdown.concurrent_initiators_all_return": {"round_skipping": 10, "round_ranged": 10, "done": 20},
    "kernel.shootdown.concurrent_initiators_with_interrupts_off_all_return": {"round_all": 8, "publish": 20},
    "kernel.shootdown.idle_cpus_are_skipped_and_flush_when_they_wake": {"awake": 1, "idle": 1},
    "mm.giga.batched_needs_two_rounds_and_one": {"give": 4096, "tag": 512, "round_all": 2},
    "mm.hvo.all_cpus_split_and_share_at_once": {"give": 50, "pte": 100, "reused": 50, "settled": 20},
    "mm.hvo.huge_blocks_become_bare_in_one_round": {"state": 60, "pte": 100, "done": 1},
    "mm.pool.all_cpus_resize_it_with_hvo_on": {"state": 50, "settled": 20},
    "mm.pool.all_cpus_resize_it_batched": {"round_all": 2, "pte": 100, "give": 20},
    "mm.section.closed_it_leaves_no_trace_and_takes_one_round": {"table": 1, "round_all": 1, "done": 1},
}

# Rounds that may wait serve many turns at once. Without waiting, each turn has its own round.
OPTIONS = {"mm.hvo.all_cpus_split_and_share_at_once": "hvo.defer=off"}

# Broken builds (tests/mutants) whose traces must be rejected, and the rule that rejects them.
REJECTED = {
    "45-page-given-before-its-round": ("mm.hvo.the_pool_gives_a_page_out_after_its_round", "publishes the block"),
    "04-tag-too-early": ("mm.hvo.all_cpus_split_and_share_at_once", r"frame 0x\w+ (at once|under tag)"),
    "06-idle-wakes-unflushed": (
        "kernel.shootdown.idle_cpus_are_skipped_and_flush_when_they_wake",
        "goes on as if it were not idle",
    ),
    "880-one-tag-for-a-gigabyte": ("mm.giga.batched_needs_two_rounds_and_one", r"under tag"),
    "16-close-without-a-round": ("mm.section.closed_it_leaves_no_trace_and_takes_one_round", "at once"),
}

NATIVE = "host-native", "HOST_CFLAGS_native=-O0"  # what is recorded is the order of steps, whatever the compiler makes of them


def test_spin(tmp_path):
    """Search the correct models exhaustively, but for those with millions of states, and find a bug planted in each (make test WHAT=models does all)."""
    argv = [sys.executable, str(MODELS / "run.py"), "--build", str(tmp_path), "--quick"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=MODEL_SECONDS, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert re.search(r"^[1-9]\d* passed, 0 failed, 0 skipped$", done.stdout, re.M), done.stdout


def record(program, case, trace, cpus=4):
    argv = [str(program), "-c", str(cpus), "-m", "3G", "-k", OPTIONS.get(case, ""), "-e", str(trace), case]
    return subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=CASE_SECONDS, check=False)


def replay(trace):
    argv = [sys.executable, str(MODELS / "replay.py"), str(trace)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=CASE_SECONDS, check=False)


@pytest.mark.parametrize("case", TRACED, ids=lambda case: case.split(".", 1)[1])
def test_replay(case, build, tmp_path):
    ran = record(build / "host/asan/ashlar-host", case, tmp_path / "trace")
    assert ran.returncode == 0, ran.stdout[-3000:]
    checked = replay(tmp_path / "trace")
    assert checked.returncode == 0, checked.stdout[-4000:]
    seen = {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", checked.stdout)}
    missing = {name: n for name, n in TRACED[case].items() if seen.get(name, 0) < n}
    assert not missing, f"the trace shows too little: {seen}, wanted at least {missing}"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the sources to break, made in the same way as for make test WHAT=mutants."""
    tree = Tree(tmp_path_factory.mktemp("broken") / "tree")
    assert not tree.make(*NATIVE)
    return tree


@pytest.mark.proof
@pytest.mark.parametrize("mutant", REJECTED)
def test_replay_rejects(mutant, tree, tmp_path):
    """The trace of a build with a broken rule is rejected by that rule. The trace of the same build without the break is not rejected."""
    case, rule = REJECTED[mutant]
    program = tree.folder / "build/host/native/ashlar-host"
    record(program, case, tmp_path / "sound")
    assert replay(tmp_path / "sound").returncode == 0
    with tree.broken(ROOT / f"tests/mutants/{mutant}.mutant"):
        assert not tree.make(*NATIVE)
        record(program, case, tmp_path / "broken")
    tree.make(*NATIVE)
    checked = replay(tmp_path / "broken")
    assert checked.returncode == 1 and re.search(rule, checked.stdout), checked.stdout[-3000:]
