"""The explorer of schedules (tests/host/explore): what it finds, that a run is a function of its input, and what it says of bad input. And
the guest that pauses at points of a seed (tests/pause)."""

import re
import shlex
import sys
from functools import partial
from pathlib import Path

import patience
import pytest
import texts
from guest import run
from hosted import Search, run_hosted
from machine import ROOT, Machine
from matrix import BY_INSTRUCTIONS

sys.path.insert(0, str(ROOT / "tests/host/explore"))

import search  # noqa: E402

SECONDS = 120


@pytest.fixture(scope="module")
def explore(build):
    program = build / "host/explore/ashlar-host"
    assert program.exists(), f"{program} is not built: run make host-explore"

    def run(*argv):
        return patience.run([program, *argv], SECONDS)

    return run


def rows(done):
    return search.rows_of(done.stdout)


# ---- the store buffers: exactly the outcomes of x86-TSO ----


def steps_of(cpus, memory):
    """What the abstract machine may do next: Sewell et al., "x86-TSO", CACM, July 2010, without its lock."""
    for i, (code, buffer, read) in enumerate(cpus):
        def after(cpu, changed, i=i):
            return (*cpus[:i], cpu, *cpus[i + 1:]), changed

        if buffer:
            yield after((code, buffer[1:], read), {**memory, buffer[0][0]: buffer[0][1]})
        if not code:
            continue
        name, value = code[0]
        if name == "fence" and not buffer:
            yield after((code[1:], buffer, read), memory)
        elif name != "fence" and value:
            yield after((code[1:], (*buffer, (name, value)), read), memory)
        elif name != "fence":
            own = [stored for at, stored in buffer if at == name]
            yield after((code[1:], buffer, (*read, own[-1] if own else memory.get(name, 0))), memory)


def outcomes(program, final):
    """All outcomes of a program: what the loads read, CPU by CPU, and then the final value of `final`."""
    todo = [(tuple((code, (), ()) for code in program), {})]
    seen, found = set(), set()
    while todo:
        cpus, memory = todo.pop()
        key = cpus, tuple(sorted(memory.items()))
        if key in seen:
            continue
        seen.add(key)
        following = list(steps_of(cpus, memory))
        todo += following
        if not following:
            found.add(tuple(value for cpu in cpus for value in cpu[2]) + ((memory.get(final, 0),) if final else ()))
    return found


# A load is (name, 0), a store (name, value).
FENCE = ("fence", 0)
LITMUS = {
    "sb": (2, None, (("x", 1), ("y", 0)), (("y", 1), ("x", 0))),
    "sb_fence": (2, None, (("x", 1), FENCE, ("y", 0)), (("y", 1), FENCE, ("x", 0))),
    "sb_locked": (2, None, (("x", 1), FENCE, ("y", 0)), (("y", 1), FENCE, ("x", 0))),
    "sb_one_fence": (2, None, (("x", 1), FENCE, ("y", 0)), (("y", 1), ("x", 0))),
    "mp": (2, None, (("x", 1), ("y", 1)), (("y", 0), ("x", 0))),
    "mp_stack": (2, None, (("x", 1), ("y", 1)), (("y", 0), ("x", 0))),
    "lb": (2, None, (("y", 0), ("x", 1)), (("x", 0), ("y", 1))),
    "iriw": (2, None, (("x", 1),), (("y", 1),), (("x", 0), ("y", 0)), (("y", 0), ("x", 0))),
    "n6": (3, "x", (("x", 1), ("x", 0), ("y", 0)), (("y", 1), ("x", 2))),
    "r": (3, "y", (("x", 1), ("y", 1)), (("y", 2), ("x", 0))),
}


def test_stores_become_visible_as_x86_tso_allows(explore):
    """The cases fail on an outcome beyond their sets; all that the machine above allows are seen."""
    done = explore("-c", "4", "-S", "60", "-p", "random", "host.litmus.*")
    assert done.returncode == 0, done.stdout
    shown = dict(re.findall(r"^# host\.litmus\.(\w+): outcomes 0x([0-9a-f]+)$", done.stdout, re.MULTILINE))
    assert shown.keys() == LITMUS.keys()
    for name, (radix, final, *program) in LITMUS.items():
        want = 0
        for outcome in outcomes(program, final):
            number = 0
            for digit in outcome:
                number = number * radix + digit
            want |= 1 << number
        assert int(shown[name], 16) == want, name


# ---- a run is a function of its input ----


def test_the_same_seed_gives_the_same_points(explore):
    once, again, other = (rows(explore("-S", "20", "-s", seed, "kernel.lock.one_holder*,mm.pcp.a_cpu_that_begins*")) for seed in "112")
    assert len(once) == 2
    for case in once:
        assert once[case]["hash"] == again[case]["hash"] != other[case]["hash"]
        assert int(once[case]["distinct"]) > 10


# ---- every concurrent case ----

CASES_AT_LEAST, SCHEDULES_AT_LEAST = 46, 40_000


def judge(status, lines):
    """The numbers of searches and of schedules, after a run without findings."""
    assert status == 0, "\n".join(lines)
    counted = re.search(r"of (\d+) searches, (\d+) schedules", "\n".join(lines))
    return int(counted[1]), int(counted[2])


@pytest.mark.aside
@pytest.mark.parametrize("hosted", [Search(1000, ("--cost", "2.2"))], ids=["short"])
def test_concurrent_cases_hold_in_a_thousand_schedules(hosted, build, guests):
    """Always the same ones. A schedule of each takes 2.2 ms at most, and all together a minute of two CPUs."""
    lines = []
    status = guests.take(hosted.name, partial(run_hosted, hosted.argv(build)), lines.append)
    cases, schedules = judge(status, lines)
    assert cases >= CASES_AT_LEAST and schedules >= SCHEDULES_AT_LEAST


@pytest.mark.proof
def test_all_concurrent_cases_hold_in_ten_thousand_schedules_of_two_depths(build):
    """Long cases in fewer, as an hour of a CPU allows. What was searched is not searched again if this is interrupted (build/explore)."""
    lines, long = [], Search(10_000, ("--strategies", "pct2,pct3", "--seconds", "3600"))
    searches, schedules = judge(run_hosted(long.argv(build), lines.append, 86_400), lines)
    assert searches >= 2 * CASES_AT_LEAST and schedules >= 2 * SCHEDULES_AT_LEAST


# ---- findings ----


def finding(explore, bug, case):
    done = explore("-S", "400", "-k", f"test.seeded_bug={bug}", f"host.seeded.{case}")
    assert done.returncode == 1, done.stdout
    found = re.search(r"^# replay: make explore T=(\S+) CPUS=3 MEM=128M CMDLINE='(\S+)' SEED='(\S*)'$", done.stdout, re.MULTILINE)
    assert found, done.stdout
    return done.stdout, found[3]


@pytest.mark.parametrize(("bug", "case", "choices"), [(1, "each_cpu_counts", 6), (2, "at_most_one_cpu_is_inside", 6)])
def test_a_seeded_bug_is_found_minimised_and_replayed(explore, bug, case, choices):
    _, schedule = finding(explore, bug, case)
    assert 0 < len(schedule.split(",")) <= choices, schedule
    ends = {explore("-k", f"test.seeded_bug={bug}", "-R", schedule, f"host.seeded.{case}").stdout.splitlines()[-1] for _ in range(2)}
    assert len(ends) == 1 and re.search(r"the case failed, hash [0-9a-f]{16} after \d+ points$", ends.pop())
    assert explore("-S", "100", f"host.seeded.{case}").returncode == 0


@pytest.mark.parametrize("strategy", ["random", "pct3", "pos"])
def test_each_strategy_finds_a_seeded_bug_and_starves_no_cpu(explore, strategy):
    done = explore("-q", "-S", "400", "-p", strategy, "-k", "test.seeded_bug=2", "host.seeded.at_most_one_cpu_is_inside")
    assert done.returncode == 1 and "# FINDING host.seeded.at_most_one_cpu_is_inside: schedule " in done.stdout, done.stdout
    assert explore("-S", "100", "-p", strategy, "host.seeded.cpus_that_spin_leave_another_its_turns").returncode == 0


def test_depth_first_says_that_it_was_exhaustive_and_finds_what_few_choices_can(explore):
    case = "host.seeded.a_cpu_that_waits_is_woken"
    row = rows(explore("-S", "100000", "-p", "dfs1", case))[case]
    assert row["note"] == "all schedules of at most 1 choices" and row["schedules"] > 10
    assert not rows(explore("-S", "10", "-p", "dfs1", case))[case]["note"]
    done = explore("-S", "100000", "-p", "dfs1", "-k", "test.seeded_bug=1", "host.seeded.each_cpu_counts")
    assert done.returncode == 1 and "choices to 1: the case failed" in done.stdout, done.stdout


def test_a_missing_round_is_found_because_a_cpu_keeps_a_translation(explore):
    """Neither does the watcher notice it, since no frame is given back, nor the same search if CPUs drop at once what a store takes away."""
    case = "a_write_goes_to_the_page_that_is_mapped"
    _, schedule = finding(explore, 4, case)
    assert re.fullmatch(r"0\.\d+:map_instead\*1", schedule), schedule
    for _ in range(2):
        assert explore("-k", "test.seeded_bug=4", "-R", schedule, f"host.seeded.{case}").returncode == 1
    row = rows(explore("-f", "-S", "400", "-k", "test.seeded_bug=4", f"host.seeded.{case}"))[f"host.seeded.{case}"]
    assert row["findings"] == 0 and row["distinct"] > 100
    assert explore("-S", "100", f"host.seeded.{case}").returncode == 0


def test_the_schedule_that_the_page_shows_fails(explore):
    """Where it does not, run the command of the page and show there what it prints now."""
    page = (ROOT / "tests/README.md").read_text(encoding="utf-8")
    shown = re.search(r"# replay: make explore T=(\S+) CPUS=3 MEM=128M CMDLINE='(\S+)'\s+SEED='(\S+)'", page)
    done = explore("-k", shown[2], "-R", shown[3], shown[1])
    assert done.returncode == 1 and f"# {shown[1]}: the case failed, hash " in done.stdout, done.stdout


def test_a_deadlock_names_the_place_of_every_cpu(explore):
    text, _ = finding(explore, 3, "a_cpu_that_waits_is_woken")
    assert "deadlock: every CPU is halted" in text
    assert re.search(r"explore: CPU 0 halted .*cpu_wait < test_host_seeded_a_cpu_that_waits_is_woken", text)
    assert re.search(r"explore: CPU [12] .*cpu_idle_loop", text)


def test_a_search_is_kept_while_its_program_seed_and_schedules_are_the_same(tmp_path):
    """One that ends badly without a row is not kept."""
    program, runs = tmp_path / "host/explore/ashlar-host", tmp_path / "runs"
    program.parent.mkdir(parents=True)

    def runs_after(status=0, seed=1, schedules=10):
        program.write_text(f"#!/bin/sh\necho run >>{runs}\nexit {status}\n", encoding="ascii")
        program.chmod(0o755)
        search.Search(tmp_path, seed).explore("mm.x", schedules)
        return runs.read_text(encoding="ascii").count("run")

    assert [runs_after(), runs_after(), runs_after(seed=2), runs_after(seed=2), runs_after(schedules=20)] == [1, 1, 2, 2, 3]
    assert [runs_after(status=1), runs_after(status=1)] == [4, 5]


# ---- bad input ----


REFUSED = texts.rows(Path(__file__).with_name("explore-refuses.txt"), r"(\S.*)\n    (\d) (.*)")


@pytest.mark.parametrize(("argv", "status", "says"), [(tuple(shlex.split(words)), int(status), says) for words, status, says in REFUSED])
def test_bad_input_is_named_with_its_place(explore, argv, status, says):
    done = explore(*argv)
    assert done.returncode == status, done.stdout
    assert says in done.stdout


# ---- a guest ----


def guest_lines(build, seed):
    machine = Machine("pvh", 4, "256M", accel=BY_INSTRUCTIONS, cmdline=f"test=guest.pause.* test.pause_seed={seed}")
    return run(machine, build / "pause/ashlar.elf", SECONDS).ended().lines


def turns(lines):
    return next(line.split()[2] for line in lines if line.startswith("  # turns "))


def test_a_seed_decides_the_order_in_which_the_cpus_of_a_guest_run(build):
    """As make run SEED=SEED. Two runs that differ are followed by a third, for the reason in test_same.py."""
    first, again, other = (guest_lines(build, seed) for seed in (7, 7, 8))
    assert again == first or guest_lines(build, 7) in (first, again)
    assert turns(first) != turns(other) and sorted(turns(first)) == sorted(turns(other))


def test_an_ordinary_kernel_has_no_such_points(build):
    name = b"pause_at_point\0"
    assert name in (build / "pause/ashlar.elf").read_bytes() and name not in (build / "ashlar.elf").read_bytes()
