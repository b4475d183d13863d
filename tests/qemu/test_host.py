"""The same kernel cases as an ordinary process under sanitizers; simulated CPUs are threads."""

import subprocess
import threading
from dataclasses import dataclass

import kunit
import pytest
from ktap import Ktap
from test_boot import COMMANDS, FAILING, what_was_asked_for_failed

SECONDS = 400


@dataclass(frozen=True)
class Hosted:
    sanitizer: str
    cpus: int
    nodes: int = 1
    patterns: str = "*"
    mem: str = "3G"  # memory that is not touched costs nothing

    @property
    def name(self):
        nodes = f"-{self.nodes}node" if self.nodes > 1 else ""
        return f"host-{self.sanitizer}-{self.cpus}cpu{nodes}"


RUNS = (
    Hosted("asan", 4),
    Hosted("asan", 8, nodes=2, patterns="kernel.*,mm.*", mem="6G"),
    Hosted("tsan", 4, patterns="host.sanitizers.*,kernel.*,mm.*"),
)


# A build whose sanitizer is silent would pass every case.
MUST_REPORT = {
    "asan": {"host.sanitizers.address", "host.sanitizers.undefined_behaviour"},
    "tsan": {"host.sanitizers.thread"},
}


@pytest.mark.ktap
@pytest.mark.parametrize("hosted", RUNS, ids=lambda hosted: hosted.name)
def test_hosted(hosted, build, cases, request):
    program = build / f"host/{hosted.sanitizer}/ashlar-host"
    assert program.exists(), f"{program} is not built: run make host-{hosted.sanitizer}"
    patterns = request.config.getoption("--select") or hosted.patterns
    argv = [str(program), "-c", str(hosted.cpus), "-n", str(hosted.nodes), "-m", hosted.mem, patterns]
    just_one = f"make host-{hosted.sanitizer} && {' '.join([str(program), *argv[1:-1]])} '{{case}}'"
    ktap = run_hosted(argv, cases(hosted.name, just_one))
    if "host.sanitizers.*" in patterns.split(",") or patterns == "*":
        assert MUST_REPORT[hosted.sanitizer] <= {case.name for case in ktap.cases if case.outcome == "passed"}


def test_run_by_hand_it_exits_as_programs_do(build):
    """The exit status is 0 for a pass, so that make and sh go on, and 1 for every other verdict."""
    argv = [str(build / "host/asan/ashlar-host"), "-x", "-c", "2", "-m", "512M", "-k"]
    passed = subprocess.run([*argv, "test=kernel.string.*"], capture_output=True, text=True, timeout=SECONDS, check=False)
    failed = subprocess.run([*argv, "bench=nonsense"], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert "verdict=pass" in passed.stdout and passed.returncode == 0, passed.stdout[-2000:]
    assert "verdict=pass" not in failed.stdout and failed.returncode == 1, failed.stdout[-2000:]


def test_what_fails_on_command_is_counted_and_survived(build):
    argv = [str(build / "host/asan/ashlar-host"), "-x", "-c", "2", "-m", "512M", "-k", f'{FAILING} run="{COMMANDS}"']
    done = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert "verdict=fail" in done.stdout and done.returncode == 1, done.stdout[-2000:]
    what_was_asked_for_failed(done.stdout)


def run_hosted(argv, reporter):
    ktap, lines = Ktap(), []
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    killer = threading.Timer(SECONDS, child.kill)
    killer.start()
    try:
        for line in child.stdout:
            lines.append(line.rstrip("\n"))
            case = ktap.feed(line)
            if case:
                reporter.add(case)
        status = child.wait()
    finally:
        killer.cancel()
    end = f"status {status} (killed after {SECONDS} s if -9); its last lines:\n" + "\n".join(lines[-60:])
    assert not kunit.problems(lines), "; ".join(kunit.problems(lines)) + "\n" + end
    assert not ktap.problems(), "; ".join(ktap.problems()) + "\n" + end
    failed = any(case.outcome == "failed" for case in ktap.cases)
    assert failed == (status != 0), f"{len(ktap.cases)} cases, failed: {failed}, yet {end}"
    reporter.check_pins()
    return ktap
