#!/usr/bin/env python3
"""`make bench WHAT=programs` runs the same ELF files on the distribution's kernels and on Ashlar, in the same QEMU, in turn.

The programs are tests/programs/bench and some of others, which foreign/foreign.c runs. Each prints its records itself. A boot of Linux runs
all programs one after the other (linux/init), and a boot of Ashlar runs one. Then every program runs once more with instructions counted
(QEMU -icount), which does not depend on other work of the host.

With PROGRAM= it runs that program instead, whose words and files are those of `make run`. What is measured is the whole run.
"""

import shlex
import shutil
import stat
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from bench_linux import TRIES, WORDS, kernels
from legs import ROOT, Leg, arguments, bench

from program import Program, Unusable, cpio_entry, cpio_entry_of, cpio_trailer, program_of, tree  # tests/qemu, by legs.py

sys.path.insert(0, str(ROOT / "tests/programs"))
import sources  # noqa: E402
from fetch import Fetcher, Missing  # noqa: E402

SOURCES = ROOT / "tests/programs/bench"
FOREIGN = SOURCES / "foreign"
CPUS, TURNS, MS, MEM, SECONDS = (1, 4, 16), 3, 300, "4G", 300
SERIES = lambda series: series != "6.1"  # noqa: E731 - the newest, and 6.12
USER_CPUS = (4,)
COUNTED, COUNTED_MS = (1, 4), 10  # CPUs of the machines that count instructions, and what a program takes there
# Without the tests of ciphers, which would run beside the programs for seconds.
LINUX = f"{WORDS} init_on_free=0 mitigations=off cryptomgr.notests"


@dataclass(frozen=True)
class Bench:
    """A program that is measured."""

    path: Path
    files: str = ""  # a folder that it sees as /
    least: int = 1  # CPUs that it needs


def own_names():
    return sorted(path.stem for path in SOURCES.glob("*.c") if path.stem != "bench")


def own(builder, name):
    path = builder.compile(f"bench-{name}", [SOURCES / f"{name}.c", SOURCES / "bench.c"], "-O2", "-pthread")
    return Bench(path)


# ---- programs of others -------------------------------------------------------------------------------------------


def foreign(builder, name, files, args, flags):
    """A program of others: its main() becomes a function that foreign.c calls."""
    quoted = ",".join(f'"{word}"' for word in args)
    words = ("-O2", "-Dmain=foreign_main", f'-DFOREIGN_NAME="{name}"', f"-DFOREIGN_ARGS={quoted}", *flags)
    return builder.compile(f"bench-{name}", [*files, FOREIGN / "foreign.c", SOURCES / "bench.c"], *words)


LUA_TESTS = ("gc", "coroutine", "strings", "nextvar")


def lua(builder, name, *args):
    """Lua with scripts. Its own tests are not committed, so that they are copied beside our scripts."""
    source, files = sources.lua(builder)
    folder = builder.out / "bench-lua-files"
    (folder / "lua").mkdir(parents=True, exist_ok=True)
    for script in [*FOREIGN.glob("*.lua"), *(source / f"testes/{test}.lua" for test in LUA_TESTS)]:
        shutil.copy(script, folder / "lua")
    return Bench(foreign(builder, name, files, args, sources.LUA_FLAGS), str(folder))


def speedtest1(builder, name):
    files, headers = sources.sqlite(builder)
    return Bench(foreign(builder, name, files, ("--size", "10", "--memdb"), (*sources.SQLITE_FLAGS, f"-I{headers}")))


def mimalloc_stress(builder, name):
    files, headers = sources.mimalloc(builder, "test-stress")
    return Bench(foreign(builder, name, files, ("@", "10", "10"), (*sources.MIMALLOC_FLAGS, *headers)), least=2)


def malloc_simple(builder, name):
    files, flags = sources.malloc_simple(builder)
    return Bench(foreign(builder, name, files, ("1024",), flags), least=2)


OTHERS = {
    "lua-tests": lambda *of: lua(*of, "-e", "_port=true " + " ".join(f"dofile'lua/{test}.lua'" for test in LUA_TESTS)),
    "lua-trees": lambda *of: lua(*of, "lua/trees.lua"),
    "lua-text": lambda *of: lua(*of, "lua/text.lua"),
    "speedtest1": speedtest1,
    "mimalloc-stress": mimalloc_stress,
    "malloc-simple": malloc_simple,
}


def build(builder, wanted):
    """{name: Bench} of the programs that can be had."""
    programs = {}
    for name in wanted:
        try:
            programs[name] = OTHERS.get(name, own)(builder, name)
        except Missing as why:
            print(f"bench-programs: skipped: {name}: {why}", file=sys.stderr)
    return programs


def with_programs(initrd, programs, out):
    """An initrd with /programs and their files: Linux unpacks one archive behind the other."""
    data = Path(initrd).read_bytes()
    data += bytes(-len(data) % 4) + cpio_entry("programs", 0o40755)
    data += b"".join(cpio_entry(f"programs/{name}", 0o100755, bench.path.read_bytes()) for name, bench in programs.items())
    for folder in sorted({bench.files for bench in programs.values() if bench.files}):
        data += b"".join(cpio_entry_of(path, name) for path, name in tree(folder))
    out.write_bytes(data + cpio_trailer())
    return str(out)


def on_linux(base, series, kernel, initrd, argument):
    words = f"{LINUX} bench_programs={argument}"
    return replace(base, name=f"{base.name}-linux-{series}", cmdline=words, kernel=kernel, initrd=initrd, tries=TRIES)


def on_ashlar(base, name, bench, argument):
    program = Program(str(bench.path), f"{base.cpus} {argument}", bench.files and shlex.quote(f"{bench.files}/."))
    module = program.write(bench.path.with_suffix(f".{base.cpus}.{argument}.cpio"))
    shown = f"make run FIRMWARE=pvh CPUS={base.cpus} MEM={base.mem} PROGRAM='{bench.path.name} {program.args}'"
    return replace(base, name=f"{base.name}-ashlar-{name}", initrd=str(module), shown=shown)


# ---- a program of the user ----------------------------------------------------------------------------------------


def with_measured(initrd, program, measure, out):
    """An initrd with the files of a program, and /measured, where measure.c finds it and its words."""
    image = program.image()
    path = next(name for name, (mode, _, _) in image.entries.items() if stat.S_ISREG(mode))
    image.put("measured/measure", stat.S_IFREG | 0o755, measure.read_bytes())
    image.put("measured/program", stat.S_IFLNK | 0o777, f"/{path}".encode())
    for name in ("cmdline", "environ"):
        image.put(f"measured/{name}", *image.entries.pop(f"proc/self/{name}"))
    folders = {str(folder) for name in image.entries for folder in Path(name).parents if folder.name}
    made = b"".join(cpio_entry(name, 0o40755) for name in sorted(folders) if name not in image.entries)
    data = Path(initrd).read_bytes()
    out.write_bytes(data + bytes(-len(data) % 4) + made + image.data())
    return str(out)


def legs_of_user(program, text, cpus, had, builder, folder):
    measure = builder.compile("bench-measure", [ROOT / "tests/report/linux/measure.c"])
    folder.mkdir(parents=True, exist_ok=True)
    module = program.write(folder / "measured.cpio")
    turns = [Leg(f"programs-{count}-{turn}", "", count, MEM, seconds=SECONDS) for count in cpus for turn in range(1, TURNS + 1)]
    for base in turns + [Leg(f"programs-icount-{count}", "", count, MEM, seconds=SECONDS, accel="icount") for count in cpus or USER_CPUS]:
        for series, kernel, initrd in filter(lambda one: SERIES(one[0]), had):
            leg = on_linux(base, series, kernel, with_measured(initrd, program, measure, folder / "measured.initrd"), 0)
            yield replace(leg, cmdline=f"{LINUX} bench_measure=1")
        shown = f"make run FIRMWARE=pvh CPUS={base.cpus} MEM={base.mem} PROGRAM={text!r}"
        yield replace(base, name=f"{base.name}-ashlar-measured", initrd=str(module), shown=shown)


def legs_of(programs, cpus, had, folder):
    """Every turn of every machine: each kernel with all programs, then Ashlar with each."""
    had = [(series, kernel, initrd) for series, kernel, initrd in had if SERIES(series)]
    bases = [
        *((Leg(f"programs-{count}-{turn}", "", count, MEM, seconds=SECONDS), MS) for count in cpus for turn in range(1, TURNS + 1)),
        *((Leg(f"programs-icount-{count}", "", count, MEM, seconds=SECONDS, accel="icount"), COUNTED_MS) for count in COUNTED),
    ]
    for base, ms in bases:
        fit = {name: bench for name, bench in programs.items() if bench.least <= base.cpus}
        for series, kernel, initrd in had if fit else ():
            yield on_linux(base, series, kernel, with_programs(initrd, fit, folder / f"programs-{base.cpus}.initrd"), ms)
        yield from (on_ashlar(base, name, bench, ms) for name, bench in fit.items())


def main():
    """--cpus: numbers of CPUs, commas between; 0: only with instructions counted."""
    args = arguments("Run the same programs on Linux and on Ashlar.", "--cpus", "--program", "--files")
    cpus = [int(word) for word in args.cpus.split(",") if int(word) > 0] if args.cpus else CPUS
    builder = sources.Builder(args.build, Fetcher(args.tools / "programs"))
    try:
        mine = program_of(args)
        if mine:
            counts = cpus if args.cpus else USER_CPUS
            legs = legs_of_user(mine, args.program, counts, kernels(args.tools), builder, args.build.resolve() / "bench")
            return bench(legs, args.build, ["programs-*.console"])
    except (Unusable, Missing) as why:
        print(why, file=sys.stderr)
        return 2
    programs = build(builder, args.only or [*own_names(), *OTHERS])
    if not programs:
        return 1
    return bench(legs_of(programs, cpus, kernels(args.tools), args.build.resolve() / "bench"), args.build, ["programs-*.console"])


if __name__ == "__main__":
    sys.exit(main())
