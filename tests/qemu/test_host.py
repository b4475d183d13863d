"""The same kernel cases as an ordinary process under sanitizers; simulated CPUs are threads."""

import re

import pytest
from hosted import RUNS, SECONDS, boot, run_hosted
from legs import LEGS, ON_REQUEST
from records import TIME, parse
from records import values_of as records
from test_boot import COMMANDS, FAILING, what_was_asked_for_failed

# A build whose sanitizer is silent would pass every case.
MUST_REPORT = {"asan": {"host.sanitizers.address", "host.sanitizers.undefined_behaviour"}, "tsan": {"host.sanitizers.thread"}}


@pytest.mark.aside
@pytest.mark.ktap
@pytest.mark.parametrize("hosted", RUNS, ids=lambda hosted: hosted.name)
def test_hosted(hosted, build, cases, guests, request):
    assert hosted.program(build).exists(), f"{hosted.program(build)} is not built: run make host-{hosted.sanitizer}"
    argv = hosted.argv(build, request.config.getoption("--select"))
    reporter = cases(hosted.name, f"make host-{hosted.sanitizer} && {' '.join(argv[:-1])} '{{case}}'")
    status, ktap = guests.take(hosted.name, lambda to: run_hosted(argv, to), reporter.feed), reporter.ktap
    end = f"status {status} (killed after {SECONDS} s if -9); its last lines:\n" + "\n".join(reporter.lines[-60:])
    assert not ktap.problems(), "; ".join(ktap.problems()) + "\n" + end
    failed = any(case.outcome == "failed" for case in ktap.cases)
    assert failed == (status != 0), f"{len(ktap.cases)} cases, failed: {failed}, yet {end}"
    reporter.check_pins()
    if {"host.sanitizers.*", "*"} & set(argv[-1].split(",")):
        assert MUST_REPORT[hosted.sanitizer] <= {case.name for case in ktap.cases if case.outcome == "passed"}


def native(build, words, cpus=2, mem="2G"):
    """What a run printed that passed."""
    done = boot(build, words, "native", cpus, mem)
    assert "verdict=pass" in done.stdout, done.stdout[-4000:]
    return done.stdout


def test_run_by_hand_it_exits_as_programs_do(build):
    """The exit status is 0 for a pass, so that make and sh go on, and 1 for every other verdict."""
    passed, failed = boot(build, "test=kernel.string.*"), boot(build, "bench=nonsense")
    assert "verdict=pass" in passed.stdout and passed.returncode == 0, passed.stdout[-2000:]
    assert "verdict=pass" not in failed.stdout and failed.returncode == 1, failed.stdout[-2000:]


def test_each_of_65_cpus_has_a_bit(build):
    assert "pass:1 fail:0" in boot(build, "test=kernel.cpumask.*", cpus=65).stdout  # in a second word of each mask


def test_what_fails_on_command_is_counted_and_survived(build):
    done = boot(build, f'{FAILING} run="{COMMANDS}"', cpus=1)
    assert "verdict=fail" in done.stdout and done.returncode == 1, done.stdout[-2000:]
    what_was_asked_for_failed(done.stdout)


def test_many_threads_are_judged_by_the_limit_of_their_run(build):
    """bench=memmap with two CPUs; with one CPU there is nothing to judge."""
    runs = {}
    for cpus in (1, 2):
        text = native(build, "bench=memmap", cpus, "512M")
        runs[cpus] = records(text, "memmap_limit")
    assert not runs[1]
    assert runs[2] and [(r["threads"], r["run"]) for r in runs[2]] == [(2, number) for number in range(1, len(runs[2]) + 1)]
    for r in runs[2]:
        gain, limit = round(r["gain"] * 1000), round(r["limit"] * 1000)
        assert gain > 0 and limit > 0
        assert (gain >= 1800 or gain * 100 >= limit * 95) == (r["good"] == 1), runs
    assert f"of the limit in {sum(r['good'] for r in runs[2])} of {len(runs[2])} runs" in text


def test_a_round_that_is_put_off_is_recorded_beside_its_leg(build):
    text = native(build, 'bench="hvo runs=1 pages=256 source=recycled modes=off,batched,on"')
    legs = {(leg["mode"], leg["op"]): leg for leg in records(text, "hvo")}
    rounds = {mode: (legs[mode, "alloc"]["flushes"], legs[mode, "alloc"]["use_flushes"]) for mode in ("off", "batched", "on")}
    assert rounds == {"off": (0, 0), "batched": (2, 0), "on": (0, 1)}


def test_legs_record_their_work_and_their_debt_is_that_of_all_blocks(build):
    """By the counts that mm keeps of blocks that change: from fresh memory, before the clock, under it, and while all is split."""
    text = native(build, 'bench="hvo runs=1 pages=256 modes=off,batched,on"')
    legs = {(leg["mode"], leg["op"]): leg for leg in records(text, "hvo")}
    work = {key: tuple(leg[name] for name in ("formed", "shared", "splits")) for key, leg in legs.items()}
    assert work == {
        ("off", "alloc"): (0, 0, 0), ("batched", "alloc"): (0, 256, 4), ("on", "alloc"): (0, 256, 0),
        ("off", "free"): (0, 0, 0), ("batched", "free"): (256, 0, 0), ("on", "free"): (0, 0, 0),
    }  # fmt: skip
    assert all(legs[mode, "alloc"]["before_formed"] >= 256 and legs[mode, "alloc"]["before_opened"] >= 4 for mode in ("off", "batched"))
    for leg in legs.values():
        assert (leg["warm"], leg["debt_blocks"]) == ("yes", 256) and leg["debt_split_ns"] >= 128 * leg["split_p50_ns"], leg
    assert legs["on", "free"]["after_formed"] >= 256, "on has formed nothing before"


# What makes the benchmarks of the legs short, and memory other than 2 GiB.
SMALL = {
    "hvo": "runs=1 pages=16 pages_unbatched=2", "quiet": "pages=16", "clear": "ms=1", "fault": "bytes=8M runs=1",
    "page_fault1": "ms=2 samples=1", "contig": "total=1", "gigablock": "ops=2000",
}  # fmt: skip
MEMORY = {"contig": "6G", "gigablock": "6G", "history": "1G", "page_fault1": "512M"}
WORK = [before + key for before in ("", "before_") for key in ("opened", "splits", "formed", "shared", "meta", "rounds")]


@pytest.mark.parametrize("name", sorted({name for leg in LEGS + ON_REQUEST for name in re.findall(r'\bbench="?(\w+)', leg.cmdline)}))
def test_every_time_of_a_leg_has_its_work_and_comes_from_warm_memory(build, name):
    """A record of steps is that of its leg. No day has gone by before the first of bench=history, and nothing compares it."""
    text = native(build, f'bench="{name} {SMALL.get(name, "")}"', mem=MEMORY.get(name, "2G"))
    timed = [r for r in parse(text.encode()).records if r.kind != "boot" and any(map(TIME.fullmatch, r.values))]
    assert timed and [r.values for r in timed if not {*WORK, "warm"} <= r.values.keys()] == []
    assert [r.values for r in timed if r.is_cold and not (name == "history" and r["day"] == 0)] == []
    assert not any(r["ns_first"] for r in timed if r.get("what") == "open"), "no opening that lazy's table has is the first"


def test_a_region_of_all_memory_leaves_room_for_its_tables(build):
    """The pool takes every page that is free, and gives back what the tables of the mapping need."""
    legs = records(native(build, 'bench="fault size=2M runs=1"', mem="1G"), "fault")
    assert len(legs) > 3 and all(leg["faults"] == leg["pages"] > 256 for leg in legs), legs


def test_pages_of_1_gib_are_demoted_in_each_mode(build):
    """From each source, in a leg of its own that forms no struct pages."""
    text = native(build, 'bench="hvo runs=1 size=1G pages=1 source=all modes=off,on"', mem="5G")
    legs = {(leg["mode"], leg["source"]): leg for leg in records(text, "hvo") if leg["op"] == "demote"}
    assert legs.keys() == {(mode, source) for mode in ("off", "on") for source in ("fresh", "recycled", "again")}
    assert all((leg["done"], leg["formed"]) == (1, 0) for leg in legs.values()), legs


def test_memory_that_no_leg_has_warmed_is_compared_with_nothing(build):
    text = native(build, 'bench="hvo runs=1 pages=16 pages_unbatched=32 modes=off,unbatched"')
    assert {(leg["mode"], leg["warm"]) for leg in records(text, "hvo")} == {("off", "yes"), ("unbatched", "no")}
    table = re.findall(r"^  (off|unbatched) +(?:grow|shrink) +\d+ +\d+ +[\d.]+  (\S+) .* (?:before|after)$", text, re.M)
    assert table == [("off", "1.00")] * 2 + [("unbatched", "-")] * 2, text[-4000:]


def test_a_cold_run_is_not_in_the_range_of_warm_ones(build):
    """Run 1 of unbatched has more pages than any leg before."""
    text = native(build, 'bench="hvo runs=2 pages=16 pages_unbatched=32 modes=off,unbatched"')
    ps = {(r["mode"], r["op"], r["run"]): r["ns"] * 1000 // r["done"] for r in records(text, "hvo")}
    assert [r["warm"] for r in records(text, "hvo") if r["mode"] == "unbatched"] == ["no", "no", "yes", "yes"]
    table = dict(re.findall(r"^  unbatched +(grow|shrink) +32 +\d+ +[\d.]+  (\S+ \(\S+ to \S+\))", text, re.M))
    for row, op in (("grow", "alloc"), ("shrink", "free")):
        off, warm = [ps["off", op, run] for run in (1, 2)], ps["unbatched", op, 2]
        ratios = warm * 100 // min(off), warm * 100 // off[1]
        shown = [f"{ratio // 100}.{ratio % 100:02}" for ratio in (ratios[0], min(ratios), max(ratios))]
        assert table.get(row) == "{} ({} to {})".format(*shown), text[-4000:]


def test_a_leg_is_as_large_as_its_pages(build):
    """One page of 1 GiB warms what 32 pages of 2 MiB need, which are more pages."""
    words = "hvo runs=1 size=1G pages=1 modes=off; hvo runs=1 size=2M pages_unbatched=32 modes=unbatched"
    text = native(build, f'bench="{words}"', mem="5G")
    assert [leg["warm"] for leg in records(text, "hvo") if leg["size"] == "2M"] == ["yes", "yes"], text[-4000:]


def test_no_round_stops_a_thread_in_ring_3_but_that_after_a_split(build):
    legs = records(native(build, "bench.hvo.pages=64 bench=quiet", 3), "quiet")
    rows = {(r["mode"], r["source"], r["quiet"]): r for r in legs if r["mode"] != "unbatched"}
    assert len(rows) == 12
    for (mode, source, quiet), r in rows.items():
        stops, split = r["stops_grow"] + r["stops_shrink"], 2 if r["splits"] else 0
        assert r["cpus"] == 3 and (stops == split if quiet == "on" else stops >= split), (mode, source, r)
    assert rows["batched", "fresh", "off"]["stops_shrink"] == 2
