#!/usr/bin/env python3
"""`make test WHAT=programs`: programs that people already have, for Linux, run here and on Ashlar.

Sources come from package registries when this runs (fetch.py). Each program is built with glibc and with musl where both can be had. It
runs first on this machine. What fails here is not expected from Ashlar and is only counted. On Ashlar it must end with the same status, and
print the same text if its text is always the same. excluded.txt lists what is excluded, with the reason.
What cannot be fetched or built is skipped with a message. As many guests run at a time as there are CPUs. On this machine programs may
use the same names, so one runs after the other.
"""

import argparse
import fnmatch
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import sources
from fetch import Fetcher, Missing, call
from sources import Builder

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "qemu"))

import texts  # noqa: E402
from guest import run  # noqa: E402
from machine import Machine  # noqa: E402
from program import Program  # noqa: E402

HOST_SECONDS, GUEST_SECONDS = 20, 120
TRIES = 3  # programs that are unlucky, because they race with themselves, may try again
HOST = threading.Lock()


@dataclass(frozen=True)
class Case:
    name: str
    path: Path
    args: tuple = ()
    files: str = ""  # a folder; on this machine the program runs in a copy of it
    env: tuple = ()
    cpus: int = 8
    seconds: int = GUEST_SECONDS
    text: bool = False  # it prints the same each time
    kept: str = ""  # what else a dynamic program opens, by its path on this machine
    accel: str = "auto"

    def file(self, build, kind):
        return build / "programs" / f"{self.name.replace('/', '-')}.{kind}"


def table(name):
    """{first word: the rest} of the lines of a text of this folder."""
    return dict(texts.rows(HERE / name, r"(\S+) +(.+)"))


# ---- the programs -------------------------------------------------------------------------------------------------


def own(builder):
    for library, how in builder.libraries():
        for name in ("hello", "threads", "signals", "collapse"):
            yield Case(f"own/{name}-{library}", builder.compile(f"{name}-{library}", [HERE / f"{name}.c"], **how), text=True)
    path = builder.compile("threads-pie", [HERE / "threads.c"], "-static-pie", "-fPIE")
    yield Case("own/threads-static-pie", path, text=True)
    path = builder.compile("threads-dynamic", [HERE / "threads.c"], "-pie", "-fPIE")
    yield Case("own/threads-dynamic", path, text=True)
    path = builder.compile("exceptions", [HERE / "exceptions.cpp"], compiler="g++")
    yield Case("own/exceptions", path, text=True)


LUA_SCRIPTS = {
    "words": 'local t = {} for w in ("b a d c"):gmatch("%a") do t[#t + 1] = w end table.sort(t) print(table.concat(t, ","))',
    "collect": "local s = 0 for i = 1, 2e5 do local t = {i} s = s + t[1] end collectgarbage() print(s)",
    "coroutines": "local f = coroutine.wrap(function() for i = 1, 5 do coroutine.yield(i * i) end end) for i = 1, 5 do print(f()) end",
}


def lua(builder):
    """Lua and its own tests, complete as `_port` allows."""
    source, files = sources.lua(builder)
    for library, how in builder.libraries():
        path = builder.compile(f"lua-{library}", files, *sources.LUA_FLAGS, **how)
        for name, script in LUA_SCRIPTS.items():
            yield Case(f"lua/{name}-{library}", path, ("-e", script), text=True)
        words = ("-e", "_port=true", "all.lua")
        yield Case(f"lua/tests-{library}", path, words, str(source / "testes"), ("PATH=/bin",), cpus=2, seconds=900)


def sqlite(builder):
    files, work = sources.sqlite(builder)
    for library, how in builder.libraries():
        path = builder.compile(f"speedtest1-{library}", files, *sources.SQLITE_FLAGS, f"-I{work}", **how)
        for name, where in (("memory", "--memdb"), ("file", "/tmp/speedtest.db")):
            yield Case(f"sqlite/speedtest1-{name}-{library}", path, ("--size", "10", "--verify", where))


def mimalloc(builder):
    """mimalloc's own tests, with the allocator linked into them. One of them creates threads and never asks whether that worked."""
    for library, how in builder.libraries():
        for test, words in (("test-api", ()), ("test-api-fill", ()), ("test-stress", ("6", "10", "10"))):
            files, headers = sources.mimalloc(builder, test)
            path = builder.compile(f"{test}-{library}", files, *sources.MIMALLOC_FLAGS, *headers, **how)
            yield Case(f"mimalloc/{test}-{library}", path, words)


# Folders of the suite's conformance/interfaces.
POSIX = ("pthread_*", "sem_*", "mmap", "munmap", "mlock*", "munlock*", "sig*", "clock*", "nanosleep", "timer_*", "sched_*", "raise", "time")
PROCESSES = re.compile(r"\bfork *\(|\bexecl|\bsystem *\(|\bmq_|threads_scenarii")


def posix(builder):
    """The conformance tests of the Open POSIX Test Suite, with glibc. Those that need processes are left out by their source. Where a test
    bounds a delay, the guest's clock counts instructions, so other work of the host delays nothing."""
    source = builder.fetcher.source("posixtestsuite", "trixie")
    folders = sorted({folder for pattern in POSIX for folder in (source / "conformance/interfaces").glob(pattern)})
    for folder in folders:
        for file in sorted(folder.glob("*.c")):
            text = file.read_text(errors="replace")
            if "int main" not in text or PROCESSES.search(text):
                continue
            name = f"{folder.name}-{file.stem}"
            flags = ("-D_GNU_SOURCE", "-D_XOPEN_SOURCE=600", f"-I{source}/include", f"-I{folder}")
            try:
                path = builder.compile(f"posix-{name}", [file], *flags, link=("-lpthread", "-lrt", "-lm"))
            except Missing:
                continue
            yield Case(f"posix/{name}", path, seconds=60, accel="icount-5" if "ACCEPTABLEDELTA" in text else "auto")


# The file that glibc reads for setlocale(LC_CTYPE, "C.UTF-8").
LOCALE = ("/usr/lib/locale/C.utf8/LC_CTYPE", "/usr/lib/x86_64-linux-gnu/gconv/gconv-modules.cache")


def locale(builder):
    root = builder.out / "locale"
    root.mkdir(parents=True, exist_ok=True)
    for name in filter(os.path.exists, LOCALE):
        (root / name[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(name, root / name[1:])
    return str(root)


def libc(builder):
    """C library functions (strings, numbers, sorting, mathematics, printing, malloc) by the tests that picolibc carries."""
    files = locale(builder)
    source = builder.fetcher.source("picolibc", "trixie") / "test"
    for library, how in builder.libraries():
        for file in sorted([*source.glob("*.c"), *source.glob("libc-testsuite/*.c")]):
            try:
                path = builder.compile(f"libc-{file.stem}-{library}", [file], "-D_GNU_SOURCE", f"-I{file.parent}", **how)
            except Missing:
                continue
            yield Case(f"libc/{file.stem}-{library}", path, files=files, seconds=60)


def rust(builder):
    if not shutil.which("rustc"):
        raise Missing("there is no rustc")
    for library, target in (("musl", "x86_64-unknown-linux-musl"), ("glibc", "x86_64-unknown-linux-gnu")):
        path = builder.out / f"rust-{library}"
        try:
            flags = ("-C", "target-feature=+crt-static", "-O", "--target", target)
            call(["rustc", *flags, str(HERE / "rust_threads.rs"), "-o", str(path)], f"for {target} (rustup target add {target})")
        except Missing as why:
            print(f"skipped: rust: {why}")
            continue
        yield Case(f"rust/threads-{library}", path, text=True)


def go(builder):
    """Go's runtime. It starts more threads than GOMAXPROCS, and a thread is a CPU."""
    if not shutil.which("go"):
        raise Missing("there is no go")
    path = builder.out / "go-runtime"
    environment = dict(os.environ, CGO_ENABLED="0", GO111MODULE="off", GOFLAGS="")
    call(["go", "build", "-o", str(path), str(HERE / "go/main.go")], "go", env=environment)
    yield Case("go/runtime", path, env=("GOMAXPROCS=3",), cpus=16, text=True)


def busybox(builder):
    path = builder.fetcher.package("busybox-static") / "bin/busybox"
    files = builder.out / "busybox-files"
    files.mkdir(parents=True, exist_ok=True)
    (files / "numbers").write_text("".join(f"{i * 379 % 1009}\n" for i in range(1, 1001)))
    for name, words in table("applets.txt").items():
        yield Case(f"busybox/{name}", path, tuple(shlex.split(words)), str(files), cpus=2, text=name != "dd")


PYTHON, PYTHON_TESTS = "/usr/bin/python3", ("mmap", "bytes", "array", "struct", "gc")
NUMPY = ("numpy", "2.2.6")
NUMPY_SCRIPT = """
import numpy as np
rng = np.random.default_rng(1)
a = rng.random((300, 300)); b = np.linalg.inv(a)
print(np.allclose(a @ b, np.eye(300)), np.sort(rng.integers(0, 10**9, 10**6))[::100000], np.fft.rfft(np.arange(8.0)).round(3))
c = np.zeros(50_000_000); c[::4096] = 1; print(c.sum(), np.memmap("/tmp/ashlar-map", "f8", "w+", shape=(1000, 1000)).sum())
"""


def python(builder):
    """Debian's Python with its library, some of its own tests, and numpy."""
    if not os.path.exists(PYTHON):
        raise Missing(f"there is no {PYTHON}")
    minor, library = call([PYTHON, "-c", "import sys, os; print(sys.version_info.minor, os.path.dirname(os.__file__))"], PYTHON).split()
    folder = builder.out / "python-files"
    suite = builder.fetcher.package(f"libpython3.{minor}-testsuite") / f"usr/lib/python3.{minor}/test"
    for source in (suite, Path(library) / "test"):
        shutil.copytree(source, folder / "test", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE / "python_tests.py", folder)
    env = ("PYTHONPATH=.", "PYTHONDONTWRITEBYTECODE=1", "LC_ALL=C.UTF-8", "OPENBLAS_NUM_THREADS=2")
    kept = f"{library} /usr/lib/locale/C.utf8"
    for test in PYTHON_TESTS:
        yield Case(f"python/{test}", Path(PYTHON), ("python_tests.py", f"test.test_{test}"), str(folder), env, 4, 900, kept=kept)
    names = "import json, sys; print(json.dumps(sorted(sys.builtin_module_names)))"
    yield Case("python/json", Path(PYTHON), ("-c", names), env=env, text=True, kept=kept)
    wheel = builder.fetcher.wheel(*NUMPY, minor)
    yield Case("python/numpy", Path(PYTHON), ("-c", NUMPY_SCRIPT), str(wheel), env, 4, 300, True, kept)


ALLOCATORS = {"jemalloc": ("libjemalloc2", "libjemalloc.so.2"), "mimalloc": ("libmimalloc2.0", "libmimalloc.so.2")}
PERL = 'my %h; $h{$_ % 1009} .= $_ for 1 .. 200000; print join(",", map { length $h{$_} } sort { $a <=> $b } keys %h), "\\n"'


def dynamic(builder):
    """Dynamic programs of this machine; with an allocator that is loaded before glibc's."""
    numbers = builder.out / "dynamic-files"
    numbers.mkdir(parents=True, exist_ok=True)
    (numbers / "numbers").write_text("".join(f"{i * 7919 % 100003}\n" for i in range(100_000)))
    (numbers / "a.i").write_text("".join(f"int f{i}(int a) {{ while (a % {i + 2}) a += {i}; return a; }}\n" for i in range(300)))
    compiler = call(["gcc", "-print-prog-name=cc1"], "cc1").strip()
    programs = {
        "sort": ("/usr/bin/sort", ("-n", "--parallel=4", "numbers")),
        "perl": ("/usr/bin/perl", ("-e", PERL)),
        "cc1": (compiler, ("-quiet", "-fpreprocessed", "-O2", "a.i", "-o", "-")),
        "node": ("/usr/bin/node", ("-e", "console.log([...Array(1e5).keys()].map((n) => n * n % 997).sort((a, b) => a - b).slice(-3))")),
    }
    for name, (path, words) in programs.items():
        if os.path.isfile(path):
            yield Case(f"dynamic/{name}", Path(path), words, str(numbers), cpus=16 if name == "node" else 8, text=True)
    for name, (package, library) in ALLOCATORS.items():
        path = builder.fetcher.package(package) / f"usr/lib/x86_64-linux-gnu/{library}"
        for program in ("sort", "cc1"):
            at, words = programs[program]
            yield Case(f"dynamic/{program}-{name}", Path(at), words, str(numbers), (f"LD_PRELOAD={path}",), text=True)


GROUPS = {group.__name__: group for group in (own, lua, sqlite, mimalloc, libc, rust, go, busybox, python, dynamic, posix)}
LEAVE_OUT = table("excluded.txt")

# ---- running ------------------------------------------------------------------------------------------------------


def on_host(case):
    """(status, text) on this machine; the status is None after a timeout."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work"
        shutil.copytree(case.files, work, symlinks=True) if case.files else work.mkdir()
        environment = dict(word.split("=", 1) for word in case.env)
        try:
            done = subprocess.run([str(case.path), *case.args], cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=max(HOST_SECONDS, case.seconds / 4), check=False)  # fmt: skip
        except subprocess.TimeoutExpired:
            return None, ""
    status = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return status, done.stdout.decode("utf-8", "replace")


def on_ashlar(case, build):
    """(status, text, outcome of the guest). The status is None if there is none."""
    files = f"{case.files and shlex.quote(case.files + '/.')} {case.kept}"
    program = Program(str(case.path), shlex.join(case.args), files, shlex.join(case.env))
    module = program.write(case.file(build, "cpio"))
    try:
        outcome = run(Machine("pvh", case.cpus, "1G", accel=case.accel, module=str(module)), build / "ashlar.elf", case.seconds)
    finally:
        module.unlink()
    found = re.search(r"^(?:.*\n)*?.*\] started \d+ of \d+ CPUs.*\n((?:.*\n)*?)(?:.*)PROGRAM name=\S+ status=(\d+)", outcome.text)
    return (int(found[2]), found[1], outcome) if found else (None, "", outcome)


def plain(text):
    """The text without lines of the kernel's log, and without the place of the program."""
    lines = [re.sub(r"^argv\[0\].*", "", line) for line in text.splitlines()]
    return [line for line in lines if line and not re.match(r"\[ *\d+\.\d+\] |BENCH program_run ", line)]


def judge(case, build):
    """One of "pass", "not here" (it fails on this machine, too) or a text about what differs."""
    own = case.name.startswith("own/")
    with HOST:
        for _ in range(1 if own else TRIES):
            status, text = on_host(case)
            if not status:
                break
    if status is None or (status != 0 and not own):
        return "not here"
    for _ in range(TRIES):
        found, said, outcome = on_ashlar(case, build)
        if found != status:
            problem = f"status {found}, on this machine {status}"
        elif case.text and plain(said) != plain(text):
            problem = "its text differs from that on this machine"
        else:
            return "pass"
        if outcome.problem:
            break
    log = case.file(build, "console")
    log.write_text(outcome.report() + "\n\n" + outcome.text)
    return f"{problem}; console: {log}"


def matches(name, patterns):
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def judge_and_tell(case, build):
    outcome = judge(case, build)
    if outcome != "not here":
        print(f"{case.name}: {outcome}\n", end="", flush=True)
    return outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", type=Path, help="where ashlar.elf is; programs are built in its folder programs/")
    parser.add_argument("--tools", default="build/tools", help="what is fetched is kept in its folder programs/")
    parser.add_argument("--select", default="", help="patterns of names, separated by blanks")
    args = parser.parse_args()
    select = args.select.split() or ["*"]
    builder = Builder(args.build, Fetcher(Path(args.tools) / "programs"))
    build, counts = args.build.resolve(), {"pass": 0, "fail": 0, "not here": 0, "excluded": 0, "skipped": 0}
    workers, begun = ThreadPoolExecutor(os.cpu_count()), []
    try:
        for group, cases in GROUPS.items():
            if not matches(group, [pattern.split("/")[0] for pattern in select]):
                continue
            try:
                for case in cases(builder):
                    if not matches(case.name, select) and not matches(group, select):
                        continue
                    if matches(case.name, LEAVE_OUT):
                        counts["excluded"] += 1
                        continue
                    begun.append(workers.submit(judge_and_tell, case, build))
            except Missing as why:
                print(f"skipped: {group}: {why}\n", end="", flush=True)
                counts["skipped"] += 1
        for running in begun:
            outcome = running.result()
            counts[outcome if outcome in counts else "fail"] += 1
    finally:
        workers.shutdown(cancel_futures=True)
    if not any(counts.values()):
        raise SystemExit(f"no program was tried: {args.select}")
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return 1 if counts["fail"] else 0


if __name__ == "__main__":
    sys.exit(main())
