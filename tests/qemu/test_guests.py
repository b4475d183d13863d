"""The matrix: each machine boots, runs every kernel test, and ends with a verdict that its exit status confirms.

Most cases keep one CPU busy, so on a host with several CPUs the machines run in the background while other tests go on in front. These
tests come last (background.py).
"""

import re
from fnmatch import fnmatchcase

import pytest
import truth
from conftest import skip_machine
from guest import run
from machine import Machine, Unavailable
from matrix import CHOSEN, ELSEWHERE, HUGE, SANITIZED, SWITCHES, all_pairs, values_of

SECONDS = 120


def pytest_generate_tests(metafunc):
    if metafunc.function is not test_guest:
        return
    option = metafunc.config.getoption
    machines = all_pairs() if option("--matrix") else HUGE if option("--huge") else SANITIZED if option("--san") else CHOSEN
    wanted = [m for m in machines if fnmatchcase(m.name, option("--machine") or "*")]
    metafunc.parametrize("machine", wanted, ids=lambda m: m.name)


def just_one(machine):
    how = f"make run FIRMWARE={machine.firmware} CPUS={machine.cpus} MEM={machine.mem}"
    how += f" NODES={machine.nodes}" if machine.nodes > 1 else ""
    how += f" ACCEL={machine.accel}" if machine.accel != "auto" else ""
    how += f" CPU={machine.cpu}" if machine.cpu != "max" else ""
    return f"{how} CMDLINE='{' '.join([*machine.words.split(), *machine.dealt.split(), ''])}test={{case}}'"


def test_each_value_of_each_switch_is_on_a_machine(kernel):
    """A new switch, or a new value of one, must be named in matrix.py."""
    text = run(Machine("pvh", 1, "128M", cmdline='run="help options"'), kernel, SECONDS).ended().text
    rows = re.findall(r"(?m)^  ([a-z][\w.]*) +(\S+) +(?:\(boot\) )?([\w-]+(?:\|[\w-]+)+): ", text)
    found = {name: (default, values.replace("|clzero", "").split("|")) for name, default, values in rows}
    switches = {name: values for name, values in found.items() if name not in ELSEWHERE and not name.startswith(("bench.", "test.", "selftest"))}
    assert {name: (values.split("|")[0], set(values.split("|"))) for name, values in SWITCHES.items()} == {
        name: (default, set(values)) for name, (default, values) in switches.items()
    }
    for name, (default, values) in switches.items():
        assert {values_of(machine).get(name, default) for machine in CHOSEN} == set(values), name


@pytest.mark.aside
@pytest.mark.machine
@pytest.mark.ktap
def test_guest(machine, guests, start_of, cases, request):
    reporter = cases(machine.name, just_one(machine), machine.without)
    ktap = reporter.ktap
    try:
        outcome = guests.take(machine.name, start_of(machine), reporter.feed)
    except Unavailable as why:
        skip_machine(machine, why)
    assert not outcome.problem, outcome.report()
    assert not ktap.problems(), "; ".join(ktap.problems()) + "\n" + outcome.report()
    assert f"started {machine.cpus} of {machine.cpus} CPUs" in outcome.text, outcome.report()
    if not request.config.getoption("--select") or truth.ram_said(outcome.lines):
        assert not truth.complaints(machine, outcome), "\n".join(truth.complaints(machine, outcome)) + "\n" + outcome.report()
    failed = sum(1 for case in ktap.cases if case.outcome == "failed")
    passed = any(case.outcome == "passed" for case in ktap.cases)
    verdict = "fail" if failed else "pass" if passed else "skipped"  # T= may select only cases that this machine cannot run
    assert outcome.verdict == verdict, f"{failed} cases failed, yet " + outcome.report()
    reporter.check_pins()
