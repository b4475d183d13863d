"""Runs benchmarks and keeps their consoles: `make bench`.

A leg is one machine with one command line: a guest in QEMU, or the hosted machine at native speed. The console of a leg is kept under
BUILD/bench with a head that says how it was made (lines `# capture KEY TEXT`), and the report is made of all consoles. A leg that fails,
hangs or is stopped is named in the report, and the others go on. Ctrl-C ends the leg that runs and makes the report of the legs that are
done.
"""

import argparse
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/qemu")]

from machine import Machine, Unavailable, command, kvm_usable, version_of  # noqa: E402
from progress import Progress  # noqa: E402
from records import parse  # noqa: E402


LATE = "it took longer than it may"


@dataclass(frozen=True)
class Leg:
    name: str
    cmdline: str
    cpus: int = 2
    mem: str = "2G"
    build: str = ""  # "": in QEMU; native or fast: that hosted build
    seconds: int = 180
    accel: str = "auto"
    kernel: str = ""  # another kernel, with its initrd
    initrd: str = ""
    tries: int = 1
    boots: tuple = ()  # if given, the machine is booted with each of these command lines in turn, `turns` times, instead of once with `cmdline`
    turns: int = 1
    shown: str = ""  # the command that a user types for this run; "": it follows from the rest
    group: str = ""  # the name of the leg in T=; "": its name up to the first dash
    tree: str = ""  # the build folder of another tree, with the kernel that runs instead of ours

    def machines(self):
        return [replace(self, cmdline=words, boots=()) for _ in range(self.turns) for words in self.boots] or [self]


BOOTS = 7  # boots of each row


def memmap_boots(cpus):
    """The rows of the memmap series for so many CPUs. A share is left out if it gives as many threads as the row before."""
    rows, threads = ["memmap=serial", "memmap=parallel memmap.threads=1"], 1
    for percent in (12, 25, 37, 50, 75, 100):
        if max(cpus * percent // 100, 1) > threads:
            threads = cpus * percent // 100
            rows.append(f"memmap=parallel memmap.threads={percent}%")
    rows += ["memmap=eager memmap.threads=1", "memmap=eager memmap.threads=100%", "memmap=lazy"]
    return tuple(f"{row} run=machine" for row in rows)


# Pools at boot: pages of 1 GiB over 7/8 of 64 GiB in each way, with and without struct pages for all other memory; 98% of 4 TiB.
POOL_WAYS = ("hvo=off", "hvo=batched", "hvo=preinit", "hvo=on")
POOLS_64G = tuple(
    f"memmap={memmap} {words} run=machine"
    for memmap in ("parallel", "lazy")
    for words in ("hvo=on", *(f"{way} hugepagesz=1G hugepages=56" for way in POOL_WAYS))
)
POOLS_4T = tuple(f"{words} run=machine" for words in ("hvo=on", "hugepagesz=1G hugepages=4014", "hugepages=2055208"))


def native_cpus():
    return min(os.cpu_count() or 1, 64)


# The legs that `make bench` runs, on the machines where the table means something. The names are those of the consoles.
LEGS = (
    Leg("hvo-2", 'bench="hvo runs=5"', 2, "12G"),
    Leg("hvo-8", 'bench="hvo runs=5"', 8, "12G"),
    Leg("hvo-32", 'bench="hvo runs=5"', 32, "12G"),
    Leg("hvo-32-512", 'bench="hvo runs=5 pages=512"', 32, "12G"),
    Leg("hvo-32-1024", 'bench="hvo runs=5 pages=1024"', 32, "12G"),
    Leg("hvo-native", 'bench="hvo runs=5 pages=1024"', 2, "4G", "native"),
    Leg("memmap-8", "bench=memmap", 8, "12G", seconds=300),
    Leg("memmap-boots-8", "rows of the memmap series, each booted", 8, "12G", boots=memmap_boots(8), turns=BOOTS),
    Leg("memmap-native", "bench=memmap", 0, "16G", "native", seconds=300),
    Leg("memmap-boots-native", "rows of the memmap series, a process each", 0, "16G", "native", boots=memmap_boots(native_cpus()), turns=BOOTS),
    Leg("clear-native", "bench=clear", 2, "4G", "native"),
    Leg("quiet-native", "bench.hvo.pages=64 bench=quiet", 8, "5G", "native"),
    Leg("fault-native", "bench=fault", 2, "5G", "native"),
    Leg("fault-4", 'bench="fault bytes=256M size=2M"', 4, "4G"),
    Leg("pcp-native", "bench=pcp", 2, "2G", "fast"),
    Leg("pcp-2", "bench=pcp", 2, "2G"),
    Leg("pcp-icount", "bench=pcp", 1, "2G", accel="icount"),
    Leg("page-fault1", "bench=page_fault1", 4, "8G", seconds=300),
    Leg("contig-fresh", 'bench="contig memory=fresh total=60"', 2, "64G", seconds=600),
    Leg("contig-booted", 'bench="contig memory=booted total=20"', 2, "32G", seconds=600),
    Leg("contig-aged", 'bench="contig memory=aged total=20"', 2, "24G", seconds=600),
    Leg("contig-native", 'bench="contig aged_touch=8G"', 2, "8G", "fast", seconds=300),
    Leg("gigablock", "bench=gigablock", 1, "12G", "native", seconds=300),
    Leg("history", "bench=history", 2, "16G", seconds=600),
)


# Legs that run only if T= names them. s0-rows has the published rows of the HVO series (s0 is its number): pools of 1 TiB, all struct
# pages of which take 16 GiB of the host. pools has pools over nearly all of 4 TiB, whose heads take 8 GiB.
ON_REQUEST = (
    Leg("s0-rows-252", 'bench="hvo runs=1 pages=524288 pages_unbatched=256"', 252, "2T", seconds=900, group="s0-rows"),
    Leg("s0-rows-252-1", 'bench="hvo runs=1 pages=524288 modes=off,batched,on" hvo.threads=1', 252, "2T", seconds=900, group="s0-rows"),
    Leg("s0-rows-32", 'bench="hvo runs=1 pages=500000 pages_unbatched=512"', 32, "2T", seconds=900, group="s0-rows"),
    Leg("pools-64", "pools at boot", 4, "64G", boots=POOLS_64G, turns=BOOTS),
    Leg("pools-4t", "pools of 98% at boot", 4, "4T", boots=POOLS_4T, turns=BOOTS),
    Leg("s0-rows-32-1", 'bench="hvo runs=1 pages=500000 modes=off,batched,on" hvo.threads=1', 32, "2T", seconds=900, group="s0-rows"),
)


def group_of(leg):
    return leg.group or leg.name.partition("-")[0]


def chosen(only):
    """The legs that T= names, by their own name or their group's; without T= those of every `make bench`."""
    return [leg for leg in LEGS + ON_REQUEST if {leg.name, group_of(leg)} & set(only)] if only else list(LEGS)


def host_name():
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    model = re.search(r"^model name\s*:\s*(.+)$", text, re.M)
    memory = re.search(r"^MemTotal:\s*(\d+) kB$", Path("/proc/meminfo").read_text(encoding="ascii"), re.M)
    kvm = "KVM" if kvm_usable() else "no KVM"
    return f"{model[1] if model else platform.machine()}, {os.cpu_count()} CPUs, {int(memory[1]) >> 20} GiB, {kvm}"


def busy_cpus(seconds=0.3):
    """How many of the host's CPUs other work keeps busy now. The load average would still count the previous run."""

    def jiffies():
        words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
        return [int(word) for word in words]  # user nice system idle iowait irq softirq steal

    before = jiffies()
    time.sleep(seconds)
    spent = [after - at for at, after in zip(before, jiffies())]
    idle = spent[3] + spent[4]
    return (os.cpu_count() or 1) * (1 - idle / max(sum(spent), 1))


def argv_of(leg, build):
    """(argv, the command that a user types for the same run, the place of the run if the console does not tell)."""
    build = Path(leg.tree) if leg.tree else build
    if leg.build:
        cpus = leg.cpus or native_cpus()
        path = build / "host" / leg.build / "ashlar-host"
        argv = [str(path), "-x", "-c", str(cpus), "-m", leg.mem, "-k", leg.cmdline]
        return argv, shlex.join([f"build/host/{leg.build}/ashlar-host"] + argv[1:]), "native"
    extra = ("-initrd", leg.initrd) if leg.initrd else ()
    machine = Machine("pvh", leg.cpus, leg.mem, cmdline=leg.cmdline, accel=leg.accel, extra=extra, strict=not leg.kernel)
    argv = command(machine, Path(leg.kernel) if leg.kernel else build / "ashlar.elf")
    accel = "icount" if "-icount" in argv else argv[argv.index("-accel") + 1].partition(",")[0]
    shown = leg.shown or f"make run FIRMWARE=pvh CPUS={leg.cpus} MEM={leg.mem} CMDLINE='{leg.cmdline}'"
    if leg.kernel:
        shown = f"make bench WHAT=linux, {Path(leg.kernel).name}, {leg.cpus} CPUs, {leg.mem}: {leg.cmdline}"
    return argv, shown, f"{accel} QEMU {'.'.join(map(str, version_of(argv[0])))}"


def head(leg, shown, where):
    accel, _, qemu = where.partition(" ")
    facts = {
        "name": leg.name,
        "command": shown,
        "host": host_name(),
        "where": accel,
        "qemu": qemu,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "busy": f"{busy_cpus():.2f}",
        "boots": str(len(leg.machines())) if leg.boots else "",
    }
    return "".join(f"# capture {key} {value}\n" for key, value in facts.items() if value)


def boot(leg, build, file):
    argv = argv_of(leg, build)[0]
    try:
        streams = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": subprocess.STDOUT}
        subprocess.run(argv, **streams, start_new_session=True, timeout=leg.seconds, check=False)
    except subprocess.TimeoutExpired:
        return LATE
    except KeyboardInterrupt:
        return "stopped"
    return ""


def run_leg(leg, build, folder):
    """Run the leg and leave FOLDER/NAME.console. Returns what went wrong, or ""."""
    path = folder / f"{leg.name}.console"
    started = time.monotonic()
    problem = ""
    try:
        machines = leg.machines()
        _, shown, where = argv_of(machines[0], build)
        with path.open("wb") as file:
            file.write(head(leg, shown, where).encode())
            file.flush()
            for machine in machines:
                problem = problem or boot(machine, build, file)
    except (Unavailable, OSError) as why:
        path.write_text(head(leg, leg.cmdline, "") + "\n")
        problem = f"it could not be started: {why}"
    with path.open("ab") as file:
        file.write(f"\n# capture seconds {time.monotonic() - started:.0f}\n".encode())
        if problem:
            file.write(f"# capture failed {problem}\n".encode())
    return problem or parse(path.read_bytes()).problem


def run_all(legs, build, folder):
    """Run all legs in order and print a line for each. Returns how many failed; stops early if asked to."""
    failed, progress = 0, Progress("leg", [leg.name for leg in legs], folder / "seconds.json")
    print(f"{len(legs)} runs; consoles in {folder}. Ctrl-C ends here and reports what there is.", flush=True)
    for number, leg in enumerate(legs, 1):
        words = leg.cmdline if len(leg.cmdline) <= 44 else "... " + leg.cmdline[-40:]
        row = f"  {number:2}/{len(legs)}  {leg.name:<18} {words:<44} "
        progress.begin(leg.name)
        print(row * (not progress.shows), end="", flush=True)
        started = time.monotonic()
        for _ in range(leg.tries):
            problem = run_leg(leg, build, folder)
            if problem in ("", "stopped", LATE):
                break
        progress.say(row * progress.shows + f"{time.monotonic() - started:4.0f} s  {problem or 'ok'}\n")
        failed += bool(problem)
        if problem == "stopped":
            break
        progress.end(leg.name)
    return failed


def consoles_in(folder):
    """The consoles of `make bench` first, in its order, then those that other targets left there."""
    names = [leg.name for leg in LEGS + ON_REQUEST]
    paths = sorted(folder.glob("*.console"))
    return sorted(paths, key=lambda path: names.index(path.stem) if path.stem in names else len(names))


def report(folder):
    """Make the report of all consoles in the folder; pictures need the distribution's own Python."""
    script = [str(ROOT / "tests/bench/report"), "--out", str(folder), *map(str, consoles_in(folder))]
    return subprocess.run(script, check=False).returncode


def arguments(description, *more):
    """The command line of a program that runs legs: --build, --tools, --only, and more options with a value."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--tools", type=Path, default=Path("build/tools"))
    parser.add_argument("--only", default="", help="names, commas between")
    for option in more:
        parser.add_argument(option, default="")
    args = parser.parse_args()
    args.only = [name for name in args.only.split(",") if name]
    return args


def bench(legs, build, old=()):
    """Run legs and make the report. Consoles that match `old` go first: an earlier session met another state of the host."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = build / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    for path in (path for pattern in old for path in folder.glob(pattern)):
        path.unlink()
    failed = run_all(list(legs), build.resolve(), folder)
    return 1 if report(folder) or failed else 0


def main():
    args = arguments("Run the benchmarks and make the report.")
    return bench(chosen(args.only), args.build)


if __name__ == "__main__":
    sys.exit(main())
