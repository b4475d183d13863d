#!/usr/bin/env python3
"""Counts what each operation costs, and compares with the figures in tests/bench/counts: `make counts` (tests/README.md).

QEMU counts the instructions, rounds and messages of bench=counts with 4 CPUs (-icount). valgrind counts, for the same operations hosted
with one CPU, misses, locked instructions, and all of these by function. Two runs of one build give the same figures.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "qemu")]

import callgrind  # noqa: E402
import figures  # noqa: E402
from callgrind import PROFILE, ROOT, VALGRIND, Failed, passed  # noqa: E402
from figures import Cost, Figures  # noqa: E402
from machine import Machine, command, version_of  # noqa: E402
from records import values_of as records  # noqa: E402

FILE, CHANGES = ROOT / "tests/bench/counts", ROOT / "CHANGELOG.md"
WORDS = "bench=counts clear.insn=rep"
SECONDS = 400
CPUS, MORE_CPUS, GIB, MORE_GIB = 4, 8, 4, 516
# The level-1 data cache has no sets: in one with sets, the place that the linker gives to other data decides which lines displace each other.
CACHES = "--I1=32768,8,64 --D1=49152,768,64 --LL=33554432,16,64"  # bytes, ways, bytes of a line
STEPS = "--zero-before=counts_step_begins --dump-before=counts_step_ends"
CLEARS = {"clear_orig", "clear_rep", "clear_erms", "clear_clzero", "clear_nt"}  # their stores are not counted
HEAD = (
    "# What each operation costs, in counts; tests/report/figures.py says what the columns mean, tests/README.md how to read them.",
    "# Written by make counts. make test fails if a figure rises by more than 2%.",
)


# ---- the tools that made the figures ----


def compiler_of(folder):
    """The compiler of a build, and whether its flags were the usual ones."""
    flags = (folder / "flags").read_text(encoding="utf-8")
    return flags.partition("\n")[0] + (", DEBUG" if "-DASHLAR_DEBUG" in flags else "")


def version_text(tool):
    return ".".join(map(str, version_of(tool)))


def kernel_tools(build):
    qemu = command(Machine("pvh", accel="icount"), build / "ashlar.elf")[0]
    return f"{compiler_of(build / 'kernel')}; QEMU {version_text(qemu)}"


def hosted_tools(build):
    return f"{compiler_of(build / 'host/native')}; valgrind {version_text('valgrind')}"


TOOLS_OF = {"kernel": kernel_tools, "hosted": hosted_tools}


# ---- in QEMU ----


def boot(build, cpus, gib, words):
    return passed(command(Machine("pvh", cpus, f"{gib}G", accel="icount", cmdline=words), build / "ashlar.elf"), SECONDS)


def ready_ns(text):
    return int(records(text, "boot")[0]["ns_to_ready"])


def figures_of(record):
    """Instructions, rounds and messages of one operation. A store of a rep instruction is no instruction."""
    times = int(record["times"])
    return Figures((int(record["ns"]) - int(record["stores"])) / times, int(record["rounds"]) / times, int(record["ipis"]) / times)


def measure_kernel(build):
    """{op: Figures} of the kernel. A boot counts in ns of the guest's clock, in which devices are also waited for."""
    text = boot(build, CPUS, GIB, WORDS)
    found = {record["op"]: figures_of(record) for record in records(text, "counts")}
    ready = ready_ns(text)
    larger, wider = (ready_ns(boot(build, *size, 'run="machine"')) for size in ((CPUS, MORE_GIB), (MORE_CPUS, GIB)))
    found["boot-per-GiB"] = Figures((larger - ready) / (MORE_GIB - GIB), 0, 0)
    found["boot-per-CPU"] = Figures((wider - ready) / (MORE_CPUS - CPUS), 0, 0)
    return found


# ---- hosted, under valgrind ----


def locked_addresses(program):
    """Addresses of instructions that lock: those with the prefix, and an exchange with memory, which needs none."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", str(program)], capture_output=True, text=True, check=True).stdout
    return {int(found[1], 16) for found in re.finditer(r"^ *([0-9a-f]+):\s+(?:lock\b|xchg\s.*\()", text, re.M)}


def plain(function):
    """The name that the source has: without what the compiler and valgrind append to parts, clones and recursion."""
    return re.split(r"[.'@]", function)[0]


def profile_of(text, locked, known):
    """{function: Cost} of one dump: what each function of mm, kernel and arch did itself."""
    costs = {}
    for (name, path), count in callgrind.parse(text, locked).items():
        if callgrind.source_of(path, known).startswith(callgrind.OURS) and plain(name) not in CLEARS:
            cost = costs.setdefault(plain(name), Cost())
            cost.insns += count["Ir"]
            cost.misses += count["D1mr"] + count["D1mw"]
            cost.locked += count["locked"]
    return costs


def measure_hosted(build):
    """{op: Figures} of the hosted machine. The environment is empty and the folder the same, because both move the stack."""
    folder = build / "host/native"
    locked, known = locked_addresses(folder / "ashlar-host"), {}
    with tempfile.TemporaryDirectory() as scratch:
        argv = [*f"{VALGRIND} {CACHES} {PROFILE} {STEPS}".split(), f"--callgrind-out-file={scratch}/out"]
        argv += ["./ashlar-host", "-x", "-u", "-c", "1", "-m", "5G", "-k", f"{WORDS} bench.counts.turns=1"]
        done = records(passed(argv, SECONDS, cwd=folder, env={"PATH": "/usr/bin:/bin"}), "counts")
        profiles = [profile_of(dump, locked, known) for dump in callgrind.dumps_in(scratch)]
    if len(profiles) != len(done) or not done:
        raise Failed(f"valgrind wrote {len(profiles)} profiles of {len(done)} operations")
    return {record["op"]: hosted_figures(profile, int(record["times"])) for record, profile in zip(done, profiles)}


def hosted_figures(profile, times):
    functions = {name: Cost(cost.insns / times, cost.misses / times, cost.locked / times) for name, cost in profile.items()}
    misses, locked = (sum(getattr(cost, kind) for cost in functions.values()) for kind in ("misses", "locked"))
    return Figures(misses=misses, locked=locked, functions=functions, times=times)


# ---- both ----


def joined(kernel, hosted):
    """The figures of both parts. A row that needs several CPUs has none of the hosted part."""
    return {op: replace(hosted.get(op, Figures()), insns=of.insns, rounds=of.rounds, ipis=of.ipis) for op, of in kernel.items()}


def measure(build):
    with ThreadPoolExecutor(2) as pool:
        kernel, hosted = pool.submit(measure_kernel, build), pool.submit(measure_hosted, build)
        return joined(kernel.result(), hosted.result())


def kinds_to_compare(part, accepted_tools, tools):
    """All kinds of the part or, where other tools made the figures, those that do not depend on tools."""
    return tuple(kind for kind in figures.OF_PART[part] if tools == accepted_tools.get(part) or kind not in figures.OF_TOOLS)


def other_tools(part, accepted_tools, tools):
    if tools == accepted_tools.get(part):
        return ""
    left_out = " and ".join(kind for kind in figures.OF_PART[part] if kind in figures.OF_TOOLS)
    return f"{left_out} are not compared: the figures are of {accepted_tools.get(part)}, this is {tools}"


# ---- accepting ----


TITLE = "## Counts\n\nChanges of the figures in [tests/bench/counts](tests/bench/counts), the latest first.\n\n"


def with_note(changes, note):
    if TITLE not in changes:
        return changes.rstrip("\n") + "\n\n" + TITLE + note + "\n"
    return changes.replace(TITLE, TITLE + note + "\n", 1)


def accept(measured, tools, reason):
    CHANGES.write_text(with_note(CHANGES.read_text(encoding="utf-8"), f"- {reason.strip().rstrip('.')}."), encoding="utf-8")
    FILE.write_text(figures.format_file(HEAD, tools, measured), encoding="utf-8")


def load():
    return figures.parse(FILE.read_text(encoding="utf-8")) if FILE.exists() else ({}, {})


def main():
    parser = argparse.ArgumentParser(description="Count what each operation costs, and compare with tests/bench/counts.")
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--accept", action="store_true", help="write the figures to the file")
    parser.add_argument("--reason", default="", help="why they changed, for CHANGELOG.md")
    args = parser.parse_args()
    if args.accept and not args.reason.strip():
        print('counts: say why the figures change: make counts WHAT="..."', file=sys.stderr)
        return 2
    accepted_tools, accepted = load()
    build = args.build.resolve()
    try:
        tools, measured = {part: TOOLS_OF[part](build) for part in TOOLS_OF}, measure(build)
    except Failed as why:
        print(f"counts: {why}", file=sys.stderr)
        return 1
    if args.accept:
        accept(measured, tools, args.reason)
        return 0
    print(figures.format_file((), tools, measured), end="")
    skipped = [reason for part in tools if (reason := other_tools(part, accepted_tools, tools[part]))]
    kinds = tuple(kind for part in tools for kind in kinds_to_compare(part, accepted_tools, tools[part]))
    risen = figures.complaints(accepted, measured, kinds)
    for line in skipped + [f"fell: {line}" for line in figures.falls(accepted, measured, kinds)] + risen:
        print(f"# {line}")
    return 1 if risen else 0


if __name__ == "__main__":
    sys.exit(main())
