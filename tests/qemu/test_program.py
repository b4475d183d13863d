"""Programs of users: what `make run PROGRAM=` passes to the kernel arrives there, under every firmware, and bad input gets a clear error."""

import re
import shlex
import struct
import subprocess
import sys
import time

import patience
import pytest
from bench_programs import build as build_benchmarks
from guest import Session, run
from machine import ROOT, Machine
from program import Program, Unusable
from records import of_kind, parse
from sources import Builder  # tests/programs, which bench_programs adds to the path

SECONDS = 120
SOURCE = ROOT / "tests/programs/hello.c"
# With quotes of both kinds and backslashes, which GRUB, the kernel's command line and the program's start each treat in their own way.
ARGS = r"""one 'two  three' "fo\"ur" fi\ ve \\ '\"' $x ; it\'s "" '{a}'"""
ENV = r"""HOME=/ 'TEXT=a "b" c'"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Returns a function that builds a program, hello.c if none is named, with flags of the compiler."""
    folder = tmp_path_factory.mktemp("programs")

    def build(*flags, source=SOURCE):
        out = folder / (source.stem + "".join(flags))
        if not out.exists():
            subprocess.run(["gcc", "-O1", *flags, str(source), "-o", str(out)], check=True, timeout=600)
        return out

    return build


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "files"
    (folder / "dir/empty").mkdir(parents=True)
    (folder / "dir/text").write_text("text\n")
    (folder / "dir/text").chmod(0o644)
    (folder / "link").symlink_to("dir/text")
    return folder


SAYS = 'run="test program.module.the_machines_*"'  # the case prints what the kernel got


def with_program(program, tmp_path, cmdline="", cpus=2, mem="256M", firmware="pvh", accel="auto"):
    module = program.write(tmp_path / "program.cpio")
    return Machine(firmware, cpus, mem, accel=accel, module=str(module), cmdline=f"{program.words} {cmdline}".strip())


def passes(outcome):
    assert "leaks:" not in outcome.ended().text, outcome.report()
    return outcome.text


def numbered(text, what):
    return re.findall(rf"{what} \d+: (.*)$", text, re.M)


@pytest.mark.parametrize("firmware, mem", [("pvh", "64M"), ("microvm", "64M"), ("bios", "64M"), ("uefi", "128M"), ("pvh", "5G")])
def test_a_program_reaches_the_kernel(built, files, kernel, tmp_path, firmware, mem):
    path = built("-static")
    text = passes(run(with_program(Program(str(path), ARGS, str(files), ENV), tmp_path, SAYS, mem=mem, firmware=firmware), kernel, SECONDS))
    assert numbered(text, "argument") == [path.name, *shlex.split(ARGS)]
    assert numbered(text, "environment") == shlex.split(ENV)
    assert f"program {path.name}: {path.stat().st_size} bytes, fixed" in text
    found = re.findall(r"file (\d+) (\d+) (.*)$", text, re.M)
    assert found == [
        ("100755", str(path.stat().st_size), path.name),
        ("40755", "0", "dir"),
        ("120777", "8", "link"),
        ("40755", "0", "dir/empty"),
        ("100644", "5", "dir/text"),
    ]


def test_a_dynamic_program_is_refused_in_words(built, kernel, tmp_path):
    outcome = run(with_program(Program(str(built())), tmp_path, SAYS, mem="64M"), kernel, SECONDS)
    outcome.ended("fail").says(r"it is linked dynamically \(link it with -static\)")


def test_a_bare_elf_is_a_module_too(built, kernel):
    outcome = run(Machine("pvh", 1, "64M", module=str(built("-static")), cmdline=f"program.args=x {SAYS}"), kernel, SECONDS)
    assert numbered(passes(outcome), "argument") == ["program", "x"], outcome.report()


def launch(*args):
    argv = [sys.executable, str(ROOT / "tests/qemu/launch.py"), "--firmware", "pvh", *args]
    return patience.run(argv, 2 * SECONDS, stdin=subprocess.DEVNULL)


def test_make_run_names_what_it_cannot_pass(tmp_path, built):
    for args, says in (
        (["--program", "/no/such"], "PROGRAM=/no/such: no such file"),
        (["--program", str(tmp_path)], "no such file"),
        (["--files", "x"], "FILES is given without PROGRAM"),
        (["--program", "HOME=/"], "PROGRAM=HOME=/: it names no program"),
        (["--program", str(SOURCE), "--files", "/no/such"], "FILES=/no/such: no such folder"),
        (["--program", f"{SOURCE} it's"], f"PROGRAM={SOURCE} it's: No closing quotation"),
        (["--program", f"{SOURCE} \u00e4"], "only printable ASCII"),
        (["--program", f"{SOURCE} {'x' * 5000}"], "the kernel reads 4095"),
    ):
        done = launch("--print", "--build", str(tmp_path), *args)
        assert done.returncode == 2 and says in done.stderr, done
    (tmp_path / SOURCE.name).write_text("another")
    with pytest.raises(Unusable, match="same name"):
        Program(str(SOURCE), files=str(tmp_path)).write(tmp_path / "out.cpio")


def ends(built, kernel, tmp_path, source, args, cpus=4, mem="256M", cmdline="", status=0, accel="auto"):
    """Run a program of tests/programs: it ends with that status, and nothing is lost."""
    path = built("-static", "-pthread", source=ROOT / "tests/programs" / source)
    outcome = run(with_program(Program(str(path), args), tmp_path, cmdline, cpus, mem, accel=accel), kernel, SECONDS)
    assert f"PROGRAM name={path.name} status={status}" in outcome.lines, outcome.report()
    assert outcome.verdict == ("pass" if status == 0 else "fail") and "leaks:" not in outcome.text, outcome.report()


# Most were a crash, a hang or a leak of the kernel once.
HOSTILE = {
    "hole": {},
    "crash": {"status": 139},
    "status": {"status": 3},
    "full": {"mem": "128M"},
    "sparse_move": {},
    "long_look": {"mem": "1G"},
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile(case, built, kernel, tmp_path):
    ends(built, kernel, tmp_path, "hostile.c", case, **HOSTILE[case])


PIE_BASE, HOLE, USER_END = 0x555555554000, 0x558000000000, 0x7FFFFFFFF000
ABOVE, IN_HOLE = "a segment ends above the addresses of programs", "a segment has addresses of the kernel"
# Type of file (2: fixed, 3: pie); address, size and rights (4: read) of a segment besides the one with code; and what the kernel says.
HOSTILE_FILES = {
    "straddles": (3, USER_END - PIE_BASE - 0x1000, 0x100000002000, 4, ABOVE),
    "beyond": (3, 0x600000000000, 0x1000, 4, ABOVE),
    "wraps": (3, 0x10000, 2**64 - 0x10000 - PIE_BASE, 4, ABOVE),
    "not_canonical": (3, 0x800000000000, 0x1000, 4, ABOVE),
    "kernel": (2, 0xFFFF888000000000, 0x1000, 4, ABOVE),
    "fixed_in_hole": (2, HOLE, 0x1000, 4, IN_HOLE),
    "pie_in_hole": (3, HOLE - PIE_BASE - 0x1000, 0x2000, 4, IN_HOLE),
    "all": (3, 0x10000, USER_END, 6, ABOVE),
}


def hostile_elf(kind, at, size, rights):
    """A program of 16 bytes of code, which ends with status 7, and one segment more."""
    base = 0 if kind == 3 else 0x400000
    code = bytes.fromhex("bf07000000 b8e7000000 0f05 ebfe 9090")
    fields = (kind, 62, 1, base + 176, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    header = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", *fields)
    loads = ((5, base, 192, 192), (rights, at, 0, size))
    return header + b"".join(struct.pack("<IIQQQQQQ", 1, flags, 0, virt, 0, used, memory, 4096) for flags, virt, used, memory in loads) + code


def test_a_hostile_file_is_refused_in_words(built, kernel, tmp_path):
    """The kernel names the file and the address, loses nothing, and runs the next program."""
    files = tmp_path / "files"
    files.mkdir()
    for name, (*load, _) in HOSTILE_FILES.items():
        (files / name).write_bytes(hostile_elf(*load))
    (files / "good").write_bytes(hostile_elf(3, 0x10000, 2**36, 4))
    for path in files.iterdir():
        path.chmod(0o755)
    with Session(with_program(Program(str(built("-static")), files=str(files)), tmp_path, "monitor"), kernel) as session:
        for name, (kind, at, _, _, says) in HOSTILE_FILES.items():
            said = session.command(f"program {name}")
            where = at + (PIE_BASE if kind == 3 and says == IN_HOLE else 0)
            assert f"program: {name}: {says} ({where:x})" in said and f"program: {name} was not started" in said, said
            assert "every frame accounted for" in session.command("mem check")
            assert "PROGRAM name=good status=7" in session.command("program good")
        passes(session.poweroff())


def test_the_monitor_runs_programs_again_and_again(built, kernel, tmp_path):
    """Whatever ends a program, the monitor goes on, nothing is lost, and the next one starts."""
    path = built("-static", "-pthread", source=ROOT / "tests/programs/interrupt.c")
    with Session(with_program(Program(str(path), "3", str(path.parent)), tmp_path, "monitor", 4, "512M"), kernel) as session:
        assert re.search(rf"(?m)^  {path.name} +\d+ bytes$", session.command("program"))
        assert "status=3" in session.command(f"program {path.name}")  # ARGS
        assert "status=0" in session.command(f"program {path.name} 0")
        assert 'no program "nix"' in session.command("program nix")
        for how, keys, status in (("spin", "\x03", 130), ("sleep", "\x03", 130), ("read", "\x03", 130), ("deaf", "\x03\x03", 137)):
            session.send(f"program {path.name} {how}; mem\r")
            session.expect(rf"\n{how}\r*\n")
            time.sleep(0.3)
            for key in keys:
                session.send(key)
                time.sleep(0.3)
            said = session.prompt()
            assert f"PROGRAM name={path.name} status={status}" in said, said
            assert "remaining commands were stopped" in said, said
            assert "every frame accounted for" in session.command("mem check")
        assert "status=4" in session.command(f"program {path.name} 4")
        assert " status=" not in passes(session.poweroff()).splitlines()[-1]


def test_a_program_ends_while_threads_are_made(built, kernel, tmp_path):
    """exit_group() races with clone() and with threads that end, and no frame and no CPU is lost."""
    path = built("-static", "-pthread", source=ROOT / "tests/programs/clone_exit.c")
    with Session(with_program(Program(str(path)), tmp_path, "monitor", 8, "512M"), kernel) as session:
        for number in range(30):
            said = session.command(f"program {path.name} {number}")
            assert re.search(r"(?m)^threads \d\d", said) and f"PROGRAM name={path.name} status={number}" in said, said
        assert "every frame accounted for" in session.command("mem check")
        passes(session.poweroff())


def test_the_machine_ends_with_the_status_of_its_program(built, kernel, tmp_path):
    path = built("-static", "-pthread", source=ROOT / "tests/programs/interrupt.c")
    for status in (0, 3, 125):
        given = {"build": kernel.parent, "cpus": 2, "mem": "256M", "timeout": SECONDS, "program": f"{path} {status}"}
        done = launch(*(f"--{name}={value}" for name, value in given.items()))
        assert done.returncode == status, done
        code = "verdict=fail code=0x11" if status else "verdict=pass code=0x10"
        assert f"ASHLAR-END {code} status={status}\n" in done.stdout.replace("\r", ""), done


@pytest.mark.parametrize(("hang", "verdict"), [("1", "crash"), ("off", "pass"), pytest.param("0", "pass", marks=pytest.mark.proof)])
def test_a_quiet_program_is_not_killed_where_that_is_wanted(hang, verdict, built, kernel, tmp_path):
    path = built("-static", "-pthread", source=ROOT / "tests/programs/interrupt.c")
    outcome = run(with_program(Program(str(path), "nap 3"), tmp_path, f"end.hang=1 end.hang={hang}"), kernel, SECONDS)
    assert outcome.verdict == verdict and ("watchdog: no progress" in outcome.text) == (verdict == "crash"), outcome.report()


def test_a_benchmark_runs_and_its_record_is_read(kernel, tmp_path):
    """`make bench WHAT=programs` builds, passes and reads programs in this way."""
    program = Program(str(build_benchmarks(Builder(tmp_path, None), ["page_fault1"])["page_fault1"].path), "2 100")
    outcome = run(with_program(program, tmp_path, mem="1G"), kernel, SECONDS)
    records = of_kind([parse(outcome.text.encode() + b"\n")], "program")
    assert [record["name"] for record in records] == ["page_fault1", "page_fault1-small"], outcome.report()
    assert all(record["threads"] == 2 and record["ops"] % 32768 == 0 for record in records), outcome.report()


COMPILERS = {"glibc": ("gcc", "-static"), "static-pie": ("gcc", "-static-pie", "-fPIE"), "musl": ("musl-gcc", "-static")}
SMALL = [(name, library) for library in COMPILERS for name in ("hello.c", "threads.c", "signals.c")] + [("collapse.c", "glibc")]
SMALL += [("exceptions.cpp", library) for library in COMPILERS if library != "musl"]  # musl-tools has no C++


@pytest.mark.parametrize("name, library", SMALL)
def test_small_programs_end_as_on_linux(kernel, tmp_path, name, library):
    compiler, *flags = COMPILERS[library]
    path = tmp_path / "a.out"
    compiler = "g++" if name.endswith("cpp") else compiler
    subprocess.run([compiler, "-O1", *flags, str(ROOT / "tests/programs" / name), "-o", str(path), "-lpthread"], check=True, timeout=600)
    argv = ["a.out", "one", "two three"]
    here = patience.run(argv, 60, executable=path, env={"HOME": "/"})
    outcome = run(with_program(Program(str(path), shlex.join(argv[1:]), env="HOME=/"), tmp_path, cpus=4), kernel, SECONDS)
    said = here.stdout.splitlines()
    assert here.returncode == (7 if name == "hello.c" else 0) and [line for line in outcome.lines if line in said] == said, outcome.report()
    assert f"PROGRAM name=a.out status={here.returncode}" in outcome.lines, outcome.report()
    assert name != "collapse.c" or "huge" in outcome.lines, outcome.report()


def test_memory_calls_answer_as_their_manual_pages_say(built, kernel, tmp_path):
    """Both systems print one line for each statement. Where Ashlar differs, the source says so, and nowhere else."""
    source = ROOT / "tests/programs/semantics.c"
    path = built("-static", source=source)
    here = patience.run([str(path)], 60).stdout.splitlines()
    outcome = run(with_program(Program(str(path)), tmp_path, mem="256M"), kernel, SECONDS)
    lines = [line for line in outcome.lines if re.match(r"[^\[#]+: |\d+ statements", line)]
    there = lines[lines.index(here[0]) : lines.index(f"{len(here) - 1} statements, 0 unlike")]
    assert "PROGRAM name=semantics-static status=0" in outcome.lines, outcome.report()
    name = lambda line: line.rpartition(": ")[0]
    assert [name(line) for line in there] == [name(line) for line in here[:-1]], outcome.report()
    # an old Linux, or one that is imitated, lacks some of what the pages say
    odd = {name(line) for line in here if "UNLIKE" in line}
    assert len(odd) < len(here) / 10, sorted(odd)
    differs = [name(a) for a, b in zip(here, there) if a != b and name(a) not in odd]
    assert differs == [text for text in re.findall(r'\bBUT\(\s*"([^"]+)"', source.read_text()) if text not in odd]
