"""Runs benchmarks and keeps their consoles: `make bench` and `make sweep`.

A leg is one machine with one command line: a guest in QEMU, or the hosted machine at native speed. Its console is kept under
BUILD/bench with a head that says how it was made (lines `# capture KEY TEXT`), and the report is made of all of them. A leg that
fails, hangs or is stopped is named there and the others go on; Ctrl-C ends the leg that runs and makes the report of what
there is.
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
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/qemu")]

from machine import Machine, Unavailable, command, kvm_usable, version_of  # noqa: E402
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
    nodes: int = 1
    firmware: str = "pvh"
    accel: str = "auto"
    kernel: str = ""  # another kernel, with its initrd
    initrd: str = ""
    tries: int = 1


# What `make bench` runs: where the table means something. Names are those of the consoles.
LEGS = (
    Leg("hvo-2", "bench=hvo runs=5", 2, "12G"),
    Leg("hvo-8", "bench=hvo runs=5", 8, "12G"),
    Leg("hvo-32", "bench=hvo runs=5", 32, "12G"),
    Leg("hvo-32-512", "bench=hvo runs=5 pages=512", 32, "12G"),
    Leg("hvo-32-1024", "bench=hvo runs=5 pages=1024", 32, "12G"),
    Leg("hvo-native", "bench=hvo runs=5 pages=1024", 2, "4G", "native"),
    Leg("memmap-8", "bench=memmap", 8, "12G"),
    Leg("memmap-native", "bench=memmap", 0, "32G", "native"),
    Leg("clear-native", "bench=clear", 2, "4G", "native"),
    Leg("fault-4", "bench=fault fault_bytes=256M", 4, "4G"),
    Leg("pcp-native", "bench=pcp", 2, "2G", "fast"),
    Leg("pcp-2", "bench=pcp", 2, "2G"),
    Leg("contig-fresh", "bench=contig memory=fresh total=60", 2, "64G", seconds=600),
    Leg("contig-aged", "bench=contig memory=aged total=20", 2, "24G", seconds=300),
    Leg("alloc-native", "bench=alloc", 2, "2G", "fast"),
)


def host_name():
    """The machine under it all, as its own files describe it."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    model = re.search(r"^model name\s*:\s*(.+)$", text, re.M)
    memory = re.search(r"^MemTotal:\s*(\d+) kB$", Path("/proc/meminfo").read_text(encoding="ascii"), re.M)
    kvm = "KVM" if kvm_usable() else "no KVM"
    return f"{model[1] if model else platform.machine()}, {os.cpu_count()} CPUs, {int(memory[1]) >> 20} GiB, {kvm}"


def busy_cpus(seconds=0.3):
    """How many of the host's CPUs others keep busy now. Its load average would still count the run before."""

    def jiffies():
        words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
        return [int(word) for word in words]  # user nice system idle iowait irq softirq steal

    before = jiffies()
    time.sleep(seconds)
    spent = [after - at for at, after in zip(before, jiffies())]
    idle = spent[3] + spent[4]
    return (os.cpu_count() or 1) * (1 - idle / max(sum(spent), 1))


def argv_of(leg, build):
    """(argv, what a user types for the same run, where it runs if the console does not tell)."""
    if leg.build:
        cpus = leg.cpus or min(os.cpu_count() or 1, 64)
        path = build / "host" / leg.build / "ashlar-host"
        argv = [str(path), "-x", "-c", str(cpus), "-m", leg.mem, "-k", leg.cmdline]
        return argv, shlex.join([f"build/host/{leg.build}/ashlar-host"] + argv[1:]), "native"
    extra = ("-initrd", leg.initrd) if leg.initrd else ()
    machine = Machine(leg.firmware, leg.cpus, leg.mem, leg.nodes, cmdline=leg.cmdline, accel=leg.accel, extra=extra)
    argv = command(machine, Path(leg.kernel) if leg.kernel else build / "ashlar.elf")
    accel = argv[argv.index("-accel") + 1].partition(",")[0]
    shown = f"make run FIRMWARE={leg.firmware} CPUS={leg.cpus} MEM={leg.mem} CMDLINE='{leg.cmdline}'"
    if leg.kernel:
        shown = f"make bench-linux, {Path(leg.kernel).name}, {leg.cpus} CPUs, {leg.mem}: {leg.cmdline}"
    return argv, shown, f"{accel} QEMU {'.'.join(map(str, version_of(argv[0])))}"


def head(leg, shown, where):
    """Where a program finds how this console was made."""
    accel, _, qemu = where.partition(" ")
    facts = {
        "name": leg.name,
        "command": shown,
        "host": host_name(),
        "where": accel,
        "qemu": qemu,
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "busy": f"{busy_cpus():.2f}",
    }
    return "".join(f"# capture {key} {value}\n" for key, value in facts.items() if value)


def follow(child, file, deadline):
    """Copy its console into the file until it ends. What went wrong, or nothing."""
    try:
        child.wait(timeout=max(deadline - time.monotonic(), 0.1))
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        return LATE
    except KeyboardInterrupt:
        child.kill()
        child.wait()
        return "stopped"
    return ""


def run_leg(leg, build, folder):
    """Runs it, leaves FOLDER/NAME.console. What went wrong, or nothing."""
    path = folder / f"{leg.name}.console"
    started = time.monotonic()
    try:
        argv, shown, where = argv_of(leg, build)
        with path.open("wb") as file:
            file.write(head(leg, shown, where).encode())
            file.flush()
            child = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
            )
            problem = follow(child, file, started + leg.seconds)
    except (Unavailable, OSError) as why:
        path.write_text(head(leg, leg.cmdline, "") + "\n")
        problem = f"it could not be started: {why}"
    with path.open("ab") as file:
        file.write(f"\n# capture seconds {time.monotonic() - started:.0f}\n".encode())
        if problem:
            file.write(f"# capture failed {problem}\n".encode())
    return problem or parse(path.read_bytes()).problem


def run_all(legs, build, folder):
    """All legs in order, a line for each. How many failed; stops early when asked to."""
    failed = 0
    print(f"{len(legs)} runs; consoles in {folder}. Ctrl-C ends here and reports what there is.", flush=True)
    for number, leg in enumerate(legs, 1):
        words = leg.cmdline if len(leg.cmdline) <= 44 else "... " + leg.cmdline[-40:]
        print(f"  {number:2}/{len(legs)}  {leg.name:<18} {words:<44}", end=" ", flush=True)
        started = time.monotonic()
        for _ in range(leg.tries):
            problem = run_leg(leg, build, folder)
            if problem in ("", "stopped", LATE):
                break
        print(f"{time.monotonic() - started:4.0f} s  {problem or 'ok'}", flush=True)
        failed += bool(problem)
        if problem == "stopped":
            break
    return failed


def consoles_in(folder):
    """Those of `make bench` first, in its order; then what other targets left there."""
    names = [leg.name for leg in LEGS]
    found = {path.stem: path for path in sorted(folder.glob("*.console"))}
    return [found[name] for name in names if name in found] + [
        path for name, path in found.items() if name not in names
    ]


def report(folder):
    """Makes the report of all consoles there; pictures need the distribution's own Python."""
    script = [str(ROOT / "tests/bench/report"), "--out", str(folder), *map(str, consoles_in(folder))]
    return subprocess.run(script, check=False).returncode


def main():
    parser = argparse.ArgumentParser(description="Run the benchmarks and make the report.")
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--only", default="", help="names of benchmarks, commas between")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = args.build / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in args.only.split(",") if name]
    legs = [leg for leg in LEGS if not wanted or leg.name.partition("-")[0] in wanted]
    if not legs:
        known = sorted({leg.name.partition("-")[0] for leg in LEGS})
        print(f"make bench: no such benchmark: {args.only}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    failed = run_all(legs, args.build.resolve(), folder)
    return 1 if report(folder) or failed else 0


if __name__ == "__main__":
    sys.exit(main())
