"""The models of tests/model: spin finds no error in them and every bug planted in them, and the hosted build obeys them. Mutants of
flush.steps-obey break its rules. The reference of tests/model/reference.py finds what calls return possible."""

import re
import sys

import draw
import patience
import pytest
import reference
from guest import run
from machine import ROOT, Machine

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


# Calls that use each of their kinds and come back to the same frames.
CALLS = (
    "g4,o2,a.1,a.1,A3.2,a9.1.1,t,m2.2.1,w7.0,w7.512,r7.0.512,w7.0,p7.0.1.1,w7.0,w7.1,m0.3,w15,W15.1,w15.2,r15.0.2,a.1,a.1,a2.1.1,w15,p15.2.1.1,w15.2,"
    "x15,a.1,a.1,a.1,v2,t1,t1,t,f31,f32,v3,u2,s9,u1,z1,c9,c10,f41,f5,a9.1.1,x7,f2,f3,a1.1.1,F6,z3,a.5,a11,f99,m9.1.1,x55,m8.4,x57,m8.2.1,"
    "a2.1,f60,a2.1.1,x59,z0,t,t,f65,v1,u1,f66,f33,v1,u1,"
    "a.1.4.1,a.1.4.2,A3.1.4.2,a.0,a.0,a.0,a.0,a.0,a.0,a4,a5"
) + 65 * ",a.2"  # more than a word of a CPU's lists holds
# When nothing else is held, room must be found for them.
RANGES = "c10,C11,f0,f1,c11"
# Pages are moved out of ranges, areas are kept for ranges, and frames are bad while they are in use, free, or in a pool.
MOVES = (
    "a8.1.16,a8.1.16,a8.1.16,a8.1.16,E3.1,a9.1.16,e5.1,f6,k6.1,a3.1.16,a.0,a2.2,g3,t..16,t,f14,e14.1,E13.1,f17,e13.2,b1.3,f1,a3.1.16,"
    "b3,F3,b9.1,t,b26.511,f26,t,f29,b29.7,b0,v2,t1,b34.1,f34,b99,b5.5,c14,c14,c13,c12,c11"
)
MOVES += ",f43,k43.4" + 20 * ",a9.0" + 24 * ",a8.1.16"  # until only blocks that are kept for ranges are left
MOVES += ",a.0,a5.1,f39,f40,f41,f42,e6.1,e43.4,k43.512,f96,a1.1.16,e6.1,a9.1,f102,k102.1" + 8 * ",a9.1"
# Pages of 1 GiB, in two zones.
GIGA = (
    "g3...1,t...1,t..16.1,f1,e2.512,f4,d1,t,T..16,e8.1,b7.5,f7,t,m1.1.2,w13,w13.262143,p13.600.1.1,w13.600,w13,w13.700,f2,b2.1000,x13,"
    "b15,a.1.8,a5.0.8,a9.1.8,a18.1.8,a18.1,a.1.16,e29.1,k29.64,a.1,e29.64,v1...1,d9,t1..0.1,f36,u1...1,b36.9,o1...1,t...1,f41,z1...1,s600,d5,z0...1"
)
GUEST = Machine("pvh", 2, "256M", accel="icount-5", cmdline=f"test=mm.calls.* test.calls={CALLS}")


def test_calls_that_were_drawn_return_what_the_reference_allows(build):
    """Without shrinking, which takes minutes; make test WHAT=models shrinks what fails."""
    for machine in draw.MACHINES:
        for calls in (CALLS, RANGES, MOVES, GIGA):
            assert not (wrong := draw.judge(build, machine, calls)), wrong
    draw.search(build, 30, shrinks=False, machines=draw.MACHINES[:-1])  # of the first ten, most make one call; the last machine clears GiBs


def test_a_guest_returns_what_the_reference_allows(kernel):
    lines = run(GUEST, kernel).ended().lines
    assert sum("# call" in line for line in lines) == CALLS.count(",") + 1
    assert reference.judge(lines, [[(0, GUEST.ram_bytes >> 12)]]) == ""


# Changes of a sound trace that make it untrue, each by the pattern that one line has, what is put in its place, and words of the answer.
LIES = {
    "a frame that another call has": (r"(# call 3 .* pfn=)\d+", "{2}", r"frame \d+ is given to call 3 and belongs to call 2"),
    "no RAM": (r"(# call 4 .* pfn=)\d+", "70000", "frame 70000 is no RAM"),
    "in the middle of a page": (r"(# call 5 .* pfn=\d+)", "1", "is not aligned"),
    "no page of the pool": (r"(# call 6 .* pfn=)\d+", "512", "was not in the pool"),
    "of another order": (r"(# call 4 .* order=)3", "2", "a page of order 2 where 3 was asked for"),
    "of another use": (r"(# call 2 .* type=)1", "0", "from a block of type 0"),
    "not cleared": (r"(# call 5 .* zero=)1", "0", "is not zero"),
    "content lost": (r"(# call 44 .* lost=)0", "1", "marks of call 5 were lost"),
    "released, not cleared": (r"(# call 11 .* old=)0", "9", "has the mark 9, not 0"),
    "writable": (r"(# call 13 .* writable=)0", "1", "is writable"),
    "no round": (r"((?s:# call 19 .*?)# state g=)\d+", "0", "no round of flushes followed"),
    "one page too many": (r"((?s:# call 38 .*?) pages9=)\d+", "7", "the pool has 7 pages"),
    "surplus kept": (r"((?s:# call 33 .*?) surplus9=)\d+", "9", "surplus of the pool is 9"),
    "a frame lost": (r"((?s:# call 24 .*?) in_use=)\d+", "1", "the owners have"),
    "cut short": (r"(# call 57 )(?s:.*)", "", "the trace has no end"),
}


# The same for MOVES.
LIES_OF_MOVES = {
    "moved, and cannot": (r"(# call 11 \S+ cpu=\d)", " move={10}.16384", "of call 10 moved and cannot"),
    "moved onto another": (r"(# call 4 .*?move=\d+\.)\d+", "{2}", r"frame \d+ is given to call 3 and belongs to call 2"),
    "nothing in the way": (r"(# call 16 .* err=)0", "16", "error 16 .* with nothing in the way"),
    "bad, and given out": (r"(# call 46 .* pfn=)\d+", "{29}", "is given to call 46 and was reported bad"),
    "bad, and in use": (r"(# call 27 .* err=)16", "0", "is out of use, and call 26 has it"),
    "kept for ranges": (r"(# call 46 .* pfn=)\d+", "{6}", "is of type 1"),
}


@pytest.fixture(scope="module")
def sound(build):
    """The traces of both, of one machine."""
    words = {calls: draw.words_of(draw.MACHINES[0], calls) for calls in (CALLS, MOVES)}
    return {calls: patience.run([build / "host/asan/ashlar-host", *argv], CASE_SECONDS).stdout for calls, argv in words.items()}


@pytest.mark.parametrize("lie", [*LIES, *LIES_OF_MOVES])
def test_the_reference_says_what_cannot_be_true(lie, sound):
    sound = sound[CALLS if lie in LIES else MOVES]
    pattern, instead, words = {**LIES, **LIES_OF_MOVES}[lie]
    instead = re.sub(r"{(\d+)}", lambda call: re.search(rf"# call {call[1]} .* pfn=(\d+)", sound)[1], instead)  # the frame of a call
    lied, count = re.subn(pattern, lambda found: found[1] + instead, sound, count=1)
    assert count == 1 and reference.judge(sound.splitlines(), reference.hosted_nodes(256 << 20)) == ""
    assert re.search(words, reference.judge(lied.splitlines(), reference.hosted_nodes(256 << 20)))


def test_a_line_of_the_log_may_cut_a_call_in_two(sound):
    cut = re.sub(r"(# call .* cpu=\d)", r"\1[    0.035979] memory: bad frame 780 was freed\n", sound[MOVES])
    assert cut != sound[MOVES] and reference.judge(cut.splitlines(), reference.hosted_nodes(256 << 20)) == ""
