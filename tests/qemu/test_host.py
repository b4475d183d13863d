"""The same kernel cases as an ordinary process under sanitizers; simulated CPUs are threads."""

import subprocess
import threading

import pytest
from ktap import Ktap

SECONDS = 300


@pytest.mark.ktap
def test_asan(build, cases, request):
    run_hosted(build / "host/asan/ashlar-host", "host-asan", cases, request.config.getoption("--select"))


def run_hosted(program, name, cases, patterns):
    assert program.exists(), f"{program} is not built: run make host-asan"
    ktap, reporter, tail = Ktap(), cases(name), []
    argv = [str(program)] + ([patterns] if patterns else [])
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    killer = threading.Timer(SECONDS, child.kill)
    killer.start()
    try:
        for line in child.stdout:
            tail = (tail + [line])[-60:]
            case = ktap.feed(line)
            if case:
                reporter.add(case)
        status = child.wait()
    finally:
        killer.cancel()
    end = f"status {status} (killed after {SECONDS} s if -9); its last lines:\n{''.join(tail)}"
    assert not ktap.problems(), "; ".join(ktap.problems()) + "\n" + end
    failed = any(case.outcome == "failed" for case in ktap.cases)
    assert failed == (status != 0), f"{len(ktap.cases)} cases, failed: {failed}, yet {end}"
    reporter.check_pins()
