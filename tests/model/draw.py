#!/usr/bin/env python3
"""Hypothesis draws calls of mm.h, the hosted machine makes them, and two references judge the run: reference.py what the calls returned, and
replay.py the events of the CPUs. What cannot be true is shrunk to the fewest and simplest calls that show it.

    tests/model/draw.py --build build --examples 200

Exit status: 0 if everything can be true, 1 if not.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings, stateful
from hypothesis import strategies as st

import reference
import replay

sys.path.append(str(Path(__file__).resolve().parents[1] / "qemu"))

import patience  # noqa: E402

# CPUs, MiB and nodes of the machines.
MACHINES = ((2, 256, 1), (1, 64, 1), (4, 256, 1), (3, 512, 2), (2, 7168, 1))  # the last has pages of 1 GiB, and memory above 4 GiB
TEXT_MOST = 3900  # characters, for the command line takes 4095
CALLS_MOST = 400  # of a run (tests/kernel/calls_test.c)
STEPS, SECONDS = 150, 120  # of an example


def words_of(machine, calls):
    """Of the command line. Only the machine with one CPU records holders, with which all calls take the slow paths."""
    cpus, mem, nodes = machine
    owners = "on" if cpus == 1 else "off"
    options = f"end.strict=on debug.page_owner={owners} test=mm.calls.* test.calls={calls}"
    return ["-x", "-c", str(cpus), "-m", f"{mem}M", "-n", str(nodes), "-k", options]


def judge(build, machine, calls):
    """"" if the run with these calls can be true, else why not."""
    cpus, mem, nodes = machine
    with tempfile.NamedTemporaryFile(prefix="ashlar-") as events:
        argv = [Path(build) / "host/asan/ashlar-host", *words_of(machine, calls), "-e", events.name]
        try:
            printed = patience.run(argv, SECONDS).stdout
        except subprocess.TimeoutExpired:
            return f"the run had no end within {SECONDS} s"
        wrong = reference.judge(printed.splitlines(), reference.hosted_nodes(mem << 20, nodes)) or replay.replay(events.name)[0]
    if not wrong and printed.count("# call ") != min(calls.count(",") + 1, CALLS_MOST):
        wrong = "some of the calls were not made"
    if wrong or "verdict=pass" in printed:
        return wrong
    return "the run did not pass:\n" + printed[-1500:]


class Calls(stateful.RuleBasedStateMachine):
    """The calls of one run. They are made when all are drawn, so a rule does not know whether a call before it got what it wanted."""

    build, machines = "build", MACHINES
    pages, maps = stateful.Bundle("pages"), stateful.Bundle("maps")
    memory = stateful.Bundle("memory")  # that calls had, and that may be free by now
    order, use, node, count = st.integers(0, 10), st.integers(0, 3), st.integers(0, 3), st.integers(0, 12)
    giga, blocks = st.sampled_from((0, 0, 1)), st.sampled_from((1, 1, 1, 2, 3, 8, 64, 512))
    request = st.sampled_from((0, 1, 2, 4, 8, 5, 15))
    place, size = st.sampled_from((0, 1, 511, 512, 1024)), st.sampled_from((1, 512, 1024, 2048))

    def __init__(self):
        super().__init__()
        self.calls, self.machine = [], MACHINES[0]

    def call(self, letter, *numbers, far=False):
        self.calls.append((letter.upper() if far else letter) + ".".join(map(str, numbers)))
        return len(self.calls) - 1

    @stateful.initialize(number=st.integers(0, len(MACHINES) - 1))
    def on(self, number):
        self.machine = self.machines[number % len(self.machines)]

    @stateful.rule(targets=(pages, memory), order=order, use=use, request=request, node=node, far=st.booleans())
    def page_alloc(self, order, use, request, node, far):
        return self.call("a", order, use, request, node, far=far)

    @stateful.rule(targets=(pages, memory), order=order, uses=st.lists(use, min_size=1, max_size=6), far=st.booleans())
    def page_alloc_some(self, order, uses, far):
        return stateful.multiple(*(self.call("a", order, use, far=far) for use in uses))

    @stateful.rule(targets=(pages, memory), order=st.integers(0, 12), far=st.booleans())
    def contig_alloc(self, order, far):
        return self.call("c", order, far=far)

    @stateful.rule(targets=(pages, memory), order=st.sampled_from((0, 0, 1, 3, 5, 9, 18)), count=st.integers(1, 6), far=st.booleans())
    def page_alloc_that_may_move(self, order, count, far):
        return stateful.multiple(*(self.call("a", order, 1, reference.MAY_MOVE, far=far) for _ in range(1 if order == 18 else count)))

    @stateful.rule(targets=(pages, memory), promised=st.integers(0, 1), node=node, moves=st.sampled_from((0, 16)), giga=giga,
                   far=st.booleans())  # fmt: skip
    def pool_page_take(self, promised, node, moves, giga, far):
        return self.call("t", promised, node, moves, giga, far=far)

    @stateful.rule(targets=(pages, memory), page=memory, blocks=blocks, far=st.booleans())
    def contig_alloc_range(self, page, blocks, far):
        return self.call("e", page, blocks, far=far)

    @stateful.rule(page=memory, blocks=blocks, far=st.booleans())
    def contig_declare_cma(self, page, blocks, far):
        self.call("k", page, blocks, far=far)

    @stateful.rule(page=memory, frame=place, far=st.booleans())
    def page_mark_bad(self, page, frame, far):
        self.call("b", page, frame, far=far)

    @stateful.rule(target=memory, letters=st.sampled_from(("gtfb", "tbf", "tfb", "gtbf")), frame=place, giga=giga, far=st.booleans())
    def a_page_of_the_pool_goes_bad(self, letters, frame, giga, far):
        if letters[0] == "g":
            self.call("g", 2, 0, 0, giga, far=far)
        page = self.call("t", 0, 0, 0, giga, far=far)
        for letter in letters[-2:]:
            self.call(letter, page, *([frame] if letter == "b" else []), far=far)
        return page

    @stateful.rule(page=stateful.consumes(pages), far=st.booleans())
    def free(self, page, far):
        self.call("f", page, far=far)

    @stateful.rule(letter=st.sampled_from("szovu"), count=count, giga=giga, far=st.booleans())
    def of_the_pool(self, letter, count, giga, far):
        self.call(letter, count, 0, 0, giga, far=far)

    @stateful.rule(count=count, node=node, mode=st.integers(0, 4), giga=giga, far=st.booleans())
    def pool_grow(self, count, node, mode, giga, far):
        self.call("g", count, node, mode, giga, far=far)

    @stateful.rule(count=st.integers(1, 2), mode=st.sampled_from((0, 0, 0, 1, 2, 3, 4)), far=st.booleans())
    def pool_demote(self, count, mode, far):
        self.call("d", count, 0, mode, far=far)

    @stateful.rule(target=maps, flags=st.sampled_from((0, 1, 2, 8, 9, 10)), pages=st.integers(1, 4), size=st.sampled_from((0, 0, 1, 1, 2)),
                   far=st.booleans())  # fmt: skip
    def huge_map(self, flags, pages, size, far):
        return self.call("m", flags, 1 if size == 2 else pages, size, far=far)

    @stateful.rule(mapping=maps, pages=st.lists(place, min_size=1, max_size=4), far=st.booleans())
    def touch(self, mapping, pages, far):
        for page in pages:
            self.call("w", mapping, page, far=far)

    @stateful.rule(mapping=maps, page=place, count=size, far=st.booleans())
    def huge_release(self, mapping, page, count, far):
        self.call("r", mapping, page, count, far=far)

    @stateful.rule(mapping=maps, page=place, count=size, read_only=st.integers(0, 1), far=st.booleans())
    def huge_protect(self, mapping, page, count, read_only, far):
        self.call("p", mapping, page, count, read_only, far=far)

    @stateful.rule(mapping=stateful.consumes(maps), far=st.booleans())
    def huge_unmap(self, mapping, far):
        self.call("x", mapping, far=far)

    def teardown(self):
        calls = ",".join([*self.calls, ""])[:TEXT_MOST].rpartition(",")[0]
        wrong = judge(self.build, self.machine, calls) if calls else ""
        assert not wrong, f"{wrong}\n    ashlar-host {shlex.join(words_of(self.machine, calls))}"


def search(build, examples, shrinks=True, machines=MACHINES):
    """Raises AssertionError with the calls that show what is wrong. The same examples in each run."""
    Calls.build, Calls.machines = build, machines
    phases = (Phase.generate, Phase.shrink) if shrinks else (Phase.generate,)
    how = settings(max_examples=examples, stateful_step_count=STEPS, derandomize=True, database=None, deadline=None, phases=phases,
                   suppress_health_check=list(HealthCheck), print_blob=False)  # fmt: skip
    stateful.run_state_machine_as_test(Calls, settings=how)


def main():
    parser = argparse.ArgumentParser(description="Draw calls of mm.h and judge what they return.")
    parser.add_argument("--build", default="build")
    parser.add_argument("--examples", type=int, default=200)
    args = parser.parse_args()
    try:
        search(args.build, args.examples)
    except AssertionError as wrong:
        print(f"not ok reference: {wrong}")
        return 1
    print(f"ok reference: {args.examples} runs of up to {STEPS} steps can be true")
    return 0


if __name__ == "__main__":
    sys.exit(main())
