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


def native_cpus():
    return min(os.cpu_count() or 1, 64)


def distinct(boots, cpus):
    """The command lines without the shares of the CPUs that make as many threads as the one before."""
    most = 1
    for words in boots:
        share = re.match(r"memmap=parallel memmap.threads=(\d+)%", words)
        threads = cpus * int(share[1]) // 100 if share else None
        if threads is None or threads > most:
            most = threads or most
            yield words


def legs_in(text):
    """The Legs of one part of legs.txt."""
    for lines in re.findall(r"^\w.+\n(?: .+\n)*", text, re.M):
        settings, cmdline, *boots = re.split(r": |\n *", lines.rstrip())
        name, *pairs = settings.split()
        fields = {key: int(value) if value.isdigit() else value for key, value in (pair.split("=") for pair in pairs)}
        yield Leg(name, cmdline, **fields, boots=tuple(distinct(boots, fields["cpus"] or native_cpus())))


# The legs of every `make bench`, and those that run only if T= names them.
LEGS, ON_REQUEST = (tuple(legs_in(part)) for part in (ROOT / "tests/report/legs.txt").read_text(encoding="utf-8").split("[on request]\n"))


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
