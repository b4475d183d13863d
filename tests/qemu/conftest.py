"""Options, and how the cases that a guest prints become cases of this suite.

A test that runs a machine gets the fixture `cases` and hands it each KTAP case as the case appears. Every case is reported as a test of its
own, at once, so a long run shows its progress and its first failure. At the end stands one plain line, `N passed, N failed, N skipped`.
"""

import math
import os
import shutil
import sys
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import pytest
from _pytest.reports import TestReport

ROOT = Path(__file__).resolve().parents[2]
# Modules that tests import. The folders of the programs that a person starts add to the path what they need themselves.
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("", "qemu", "report", "mutants", "model", "programs", "replay", "lint")]

import pins  # noqa: E402
from background import Background  # noqa: E402
from guest import run  # noqa: E402
from hosted import RUNS, run_hosted  # noqa: E402
from ktap import Ktap  # noqa: E402
from machine import version_of  # noqa: E402
from matrix import CHOSEN, QEMU, deadline  # noqa: E402
from mutants import copy_tree  # noqa: E402
from progress import Progress  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--build", default="build", help="the build folder, with ashlar.elf")
    parser.addoption("--select", default="", help="only cases that match these globs (commas between)")
    parser.addoption("--matrix", action="store_true", help="all pairs of firmware, CPUs and RAM instead of eleven machines")
    parser.addoption("--huge", action="store_true", help="1024 CPUs and 4 TiB instead")
    parser.addoption("--machines", action="store_true", help="the rows of boot/metal.md instead")
    parser.addoption("--proof", action="store_true", help="the tests that take long and seldom tell anything new, instead of the others")
    parser.addoption("--san", action="store_true", help="the kernel was built with DEBUG=san: every case in it, and what must report")
    parser.addoption("--machine", default="", help="only machines whose name matches this glob")


def selected(config, name):
    patterns = [p for p in config.getoption("--select").split(",") if p]
    return not patterns or any(fnmatchcase(name, p) for p in patterns)


def case_name(item):
    """The name build.reproducible for tests/qemu/test_build.py::test_reproducible."""
    return item.path.stem.removeprefix("test_") + "." + item.name.removeprefix("test_")


def row_name(item):
    """The name board-pc-bios for test_row[board-pc-bios] of test_machines.py, and no_hypervisor_bit for test_no_hypervisor_bit, here or in test_efi.py."""
    return item.callspec.params["row"].name if item.originalname == "test_row" else item.name.removeprefix("test_")


def length(item):
    """A key for the order of runs in the background: the longest come first. Hosted runs are the longest."""
    machine = item.callspec.params.get("machine")
    return -deadline(machine) if machine else -1e6


def is_wanted(config, item):
    """The options choose by the markers of a test; each marker that a test has must be asked for."""
    option, has = config.getoption, item.get_closest_marker
    if option("--machines") or has("metal"):
        return option("--machines") and has("metal") and fnmatchcase(row_name(item), option("--machine") or "*")
    if bool(has("proof")) != option("--proof") or (has("san") and not option("--san")):
        return False
    return has("machine") or not (option("--matrix") or option("--huge") or option("--san")) or (has("san") and option("--san"))


def pytest_collection_modifyitems(config, items):
    """--select names kernel cases (any suite but this one's own) or tests of these files: build.*, boot.*, ..."""
    items[:] = [item for item in items if is_wanted(config, item)]
    items.sort(key=lambda item: length(item) if item.get_closest_marker("aside") else -math.inf)
    if config.getoption("--select"):
        ours = [item for item in items if not item.get_closest_marker("ktap") and selected(config, case_name(item))]
        items[:] = ours or [item for item in items if item.get_closest_marker("ktap")]


def pytest_runtestloop(session):
    """On a terminal a line that moves stands for the names of files and the dots."""
    config = session.config
    names = [item.nodeid for item in session.items]
    config.progress = Progress("test", names, Path(config.getoption("--build")) / "seconds.json", 1, config.get_terminal_writer()._file)
    if config.progress.shows:
        config.pluginmanager.getplugin("terminalreporter").showfspath = False


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    item.config.progress.begin(item.nodeid)
    yield
    item.config.progress.end(item.nodeid)


def pytest_report_teststatus(report, config):
    """No letter for what passes or is skipped, and the name of what does not."""
    if config.progress.shows and (report.when == "call" or report.outcome != "passed"):
        return report.outcome, f"\r\x1b[KFAILED {report.nodeid}\n" * report.failed, "FAILED" * report.failed
    return None


def pytest_report_header():
    here = version_of("qemu-system-x86_64")
    return f"QEMU {here[0]}.{here[1]}" + ("" if here == QEMU else f": runs by instructions are another schedule than with {QEMU[0]}.{QEMU[1]}")


def pytest_configure(config):
    config.addinivalue_line("markers", "machine: boots one of the matrix")
    config.addinivalue_line("markers", "aside: the run of this test begins in the background, before the test's turn")
    config.addinivalue_line("markers", "metal: only with --machines")
    config.addinivalue_line("markers", "san: only with --san")
    config.addinivalue_line("markers", "proof: only with --proof (make test WHAT=long)")
    config.addinivalue_line("markers", "ktap: its cases come from the console of what it runs")


@pytest.fixture(scope="session")
def build(request):
    return Path(request.config.getoption("--build")).resolve()


@pytest.fixture(scope="session")
def kernel(build):
    path = build / "ashlar.elf"
    assert path.exists(), f"{path} is not built: run make"
    return path


@pytest.fixture(scope="session")
def copy(tmp_path_factory, build):
    """A copy of the tree in a folder whose name has another length, with the kernel's objects as if they had been built there."""
    folder = tmp_path_factory.mktemp("another-folder-for-the-same-tree")
    copy_tree(folder)
    for name in ("kernel", "vdso"):
        shutil.copytree(build / name, folder / "build" / name)
    flags = folder / "build/kernel/flags"  # which names the folder
    built = flags.stat()
    flags.write_text(flags.read_text().replace(str(ROOT), str(folder)))
    os.utime(flags, ns=(built.st_atime_ns, built.st_mtime_ns))
    return folder


def every_case(without):
    """The value of test= for all cases but those that match."""
    return ",".join(["*"] + [f"-{glob}" for glob in without.split(",") if glob])


SAN_SLOWER = 5  # a kernel that checks every access
MANY = 32  # CPUs of a guest; more of them are threads that compete for the host's CPUs


@pytest.fixture(scope="session")
def start_of(request):
    """The way to run a machine of the matrix: start_of(machine)(on_line) returns its outcome."""
    option = request.config.getoption
    slower = SAN_SLOWER if option("--san") else 1

    def start(machine, on_line):
        chosen = replace(machine, cmdline=f"test={option('--select') or every_case(machine.without)}")
        return run(chosen, Path(option("--build")).resolve() / "ashlar.elf", slower * deadline(machine), on_line)

    return lambda machine: partial(start, machine)


@pytest.fixture(scope="session", autouse=True)
def guests(request, build, start_of):
    """Every machine of the matrix and every hosted run that is to be tested, begun as soon as there is a CPU for it."""
    background = Background()
    for item in request.session.items if os.cpu_count() > 1 else ():
        if not item.get_closest_marker("aside"):
            continue
        if item.get_closest_marker("machine"):
            machine = item.callspec.params["machine"]
            background.add(machine.name, start_of(machine), machine.cpus > MANY)
        elif (hosted := item.callspec.params["hosted"]).program(build).exists():
            background.add(hosted.name, partial(run_hosted, hosted.argv(build, request.config.getoption("--select"))), False)
    background.begin()
    request.config.run_seconds = background.seconds
    yield background
    background.close()


# What the cases of each machine and run of make test said; None: it has not run.
RAN = dict.fromkeys(machine.name for machine in (*CHOSEN, *RUNS))


class Cases:
    """Turns KTAP cases into reports beside the running test's own."""

    def __init__(self, item, machine, how, without=""):
        self.item, self.machine, self.how = item, machine, how
        self.pins = [pin for pin in pins.load() if not pin.case_matches(without)]
        self.ktap, self.lines, self.skips = Ktap(), [], []
        self.capture = item.config.pluginmanager.getplugin("capturemanager")

    def feed(self, line):
        self.lines.append(line)
        case = self.ktap.feed(line)
        if case:
            self._report(case)

    def _report(self, case):
        outcome, detail = case.outcome, case.detail
        if outcome == "skipped":
            self.skips.append((case.name, detail))
            if not pins.expected(self.pins, self.machine, case.name, detail):
                outcome, detail = "failed", f"unexpected skip: {detail}"
        path, line, _ = self.item.location
        failure = f"{self.machine}: {case.name}\n{detail}\njust this one: {self.how.format(case=case.name)}"
        longrepr = {"passed": None, "failed": failure, "skipped": (path, line, detail)}[outcome]
        report = TestReport(
            nodeid=f"{self.item.nodeid}::{case.name}",
            location=(path, line, case.name),
            keywords={},
            outcome=outcome,
            longrepr=longrepr,
            when="call",
            duration=case.ns / 1e9,
        )
        with self.capture.global_and_fixture_disabled():
            self.item.ihook.pytest_runtest_logreport(report=report)

    def check_pins(self):
        """A pinned skip that did not happen is a failure: it is a change that nobody has checked."""
        if self.item.config.getoption("--select"):
            return
        said = {case.name: case.detail if case.outcome == "skipped" else None for case in self.ktap.cases}
        gone = pins.vanished(self.pins, self.machine, said, self.skips)
        if self.machine in RAN and version_of("qemu-system-x86_64") == QEMU:  # with another, firmware leaves other memory
            RAN[self.machine] = said
            gone += pins.never_shown(self.pins, self.machine, RAN)
        assert not gone, "expected skips that did not happen: " + "; ".join(f"{p.case} ({p.reason})" for p in gone)


@pytest.fixture
def cases(request):
    """Makes the reporter of a machine: cases(name, the command line that runs one {case} of the machine alone)."""
    return lambda *args: Cases(request.node, *args)


def skip_machine(machine, reason):
    """The host cannot run the machine: this is a skip if the skip is expected, else a failure."""
    reason = str(reason)
    if pins.expected(pins.load(), machine.name, "-", reason):
        pytest.skip(reason)
    pytest.fail(f"{machine.name} cannot run: {reason}")


def pytest_unconfigure(config):
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is None or config.option.collectonly:
        return
    for name, seconds in sorted(getattr(config, "run_seconds", {}).items(), key=lambda run: -run[1]):
        print(f"{seconds:8.1f} s  {name}")
    count = {key: len(reporter.stats.get(key, [])) for key in ("passed", "failed", "error", "skipped")}
    print(f"{count['passed']} passed, {count['failed'] + count['error']} failed, {count['skipped']} skipped")
    sys.stdout.flush()
