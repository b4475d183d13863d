"""The hosted build (tests/host) as the tests run it: all cases under one sanitizer, in one process, and the search of schedules."""

import subprocess
import sys
import threading
from dataclasses import dataclass

import patience

from machine import ROOT

SECONDS = 900


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

    def program(self, build):
        return build / f"host/{self.sanitizer}/ashlar-host"

    def argv(self, build, patterns):
        return [str(self.program(build)), "-c", str(self.cpus), "-n", str(self.nodes), "-m", self.mem, patterns or self.patterns]


@dataclass(frozen=True)
class Search:
    """The schedules of concurrent cases. With `cost`, only of cases of which a schedule takes so many ms at most."""

    schedules: int
    more: tuple = ()
    name = "host-explore"

    def program(self, build):
        return build / "host/explore/ashlar-host"

    def argv(self, build, _patterns=""):
        search = ROOT / "tests/host/explore/search.py"
        return [sys.executable, str(search), "--build", str(build), "--schedules", str(self.schedules), *self.more]


LONG = (
    "-mm.huge_map.a_part_of_a_1g_page,-mm.huge_map.random_rights*,-mm.history,-mm.packed,-mm.random"
    ",-mm.memmap_open.poisoned*,-mm.giga.one_is_allocated*,-mm.memmap.a_mapped*,-mm.turns.nodes*,-mm.section.homes*"
)

# mm.fault*, mm.history.* and mm.packed.* let one CPU work, and need no more than one run. Under tsan, long cases without a race of their own
# are left out.
RUNS = (
    Hosted("tsan", 4, patterns=f"host.sanitizers.*,kernel.*,mm.*,-mm.fault,-mm.fault_giga,{LONG}"),
    Hosted("asan", 4),
    Hosted("asan", 8, nodes=2, patterns="mm.*,-mm.fault,-mm.fault_giga,-mm.history,-mm.packed", mem="6G"),
)


def boot(build, words, kind="asan", cpus=2, mem="512M", more=(), seconds=SECONDS):
    """Run the hosted kernel by hand with these words of the command line; returns the process, which has ended."""
    argv = [str(build / f"host/{kind}/ashlar-host"), "-x", "-c", str(cpus), "-m", mem, *more, "-k", words]
    return patience.run(argv, seconds)


def run_hosted(argv, on_line, seconds=SECONDS, cwd=None):
    """Run it and return its exit status. A run that takes longer is killed, and so is one from which on_line() wants no more: True. Its
    machines end with it."""
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", cwd=cwd)
    ended, end = threading.Event(), patience.now() + seconds

    def kill_late():
        while not ended.wait(patience.STEP):
            if patience.now() > end:
                child.kill()

    threading.Thread(target=kill_late, daemon=True).start()
    try:
        for line in child.stdout:
            if on_line(line.rstrip("\n")):
                child.kill()
        return child.wait()
    finally:
        ended.set()
