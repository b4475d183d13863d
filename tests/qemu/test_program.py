"""Programs of users: what `make run PROGRAM=` passes to the kernel arrives there, under every firmware, and bad input gets a clear error."""

import os
import random
import re
import shlex
import struct
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import files_out
import patience
import pytest
from bench_programs import build as build_benchmarks
from guest import Session, run
from machine import ROOT, Machine
from program import Program, Unusable, cpio_entry, cpio_trailer
from records import of_kind, parse
from sources import Builder  # tests/programs, which bench_programs adds to the path
from test_balloon import Asked

SECONDS = 120
SOURCE = ROOT / "tests/programs/hello.c"
# With quotes of both kinds and backslashes; the kernel gets the words as a shell makes them.
ARGS = r"""one 'two  three' "fo\"ur" fi\ ve \\ '\"' $x ; it\'s "" '{a}' ä"""
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


def with_program(program, tmp_path, cmdline="", cpus=2, mem="256M", firmware="pvh"):
    return Machine(firmware, cpus, mem, module=str(program.write(tmp_path / "program.cpio")), cmdline=cmdline)


def passes(outcome):
    assert "leaks:" not in outcome.ended().text, outcome.report()
    return outcome.text


def numbered(text, what):
    return re.findall(rf"{what} \d+: (.*)$", text, re.M)


@pytest.mark.parametrize("firmware, mem", [("pvh", "64M"), ("microvm", "64M"), ("bios", "64M"), ("uefi", "128M"), ("efi", "128M"), ("pvh", "5G")])
def test_a_program_reaches_the_kernel(built, files, kernel, tmp_path, firmware, mem):
    path = built("-static")
    program = Program(str(path), ARGS, f"{files}/.", ENV)
    text = passes(run(with_program(program, tmp_path, SAYS, mem=mem, firmware=firmware), kernel, SECONDS))
    assert numbered(text, "argument") == [path.name, *shlex.split(ARGS)]
    assert numbered(text, "environment") == shlex.split(ENV)
    assert f"program {path.name}: {path.stat().st_size} bytes, fixed" in text
    found = re.findall(r"file (\d+) (\d+) (?!proc/)(.*)$", text, re.M)
    assert found == [
        ("100755", str(path.stat().st_size), path.name),
        ("40755", "0", "dir"),
        ("120777", "8", "link"),
        ("40755", "0", "dir/empty"),
        ("100644", "5", "dir/text"),
    ]


def test_a_dynamic_program_without_its_interpreter_is_refused_in_words(built, kernel):
    outcome = run(Machine("pvh", 1, "64M", module=str(built())), kernel, SECONDS)
    outcome.ended("fail").says(r"it is linked dynamically, and there is no file /lib64/ld-linux-x86-64.so.2, its interpreter")


def test_a_bare_elf_is_a_module_too(built, kernel):
    outcome = run(Machine("pvh", 1, "64M", module=str(built("-static")), cmdline=SAYS), kernel, SECONDS)
    assert numbered(passes(outcome), "argument") == ["program"], outcome.report()


def launch(*args, **how):
    argv = [sys.executable, ROOT / "tests/qemu/launch.py", "--firmware", "pvh", *args]
    return patience.run([*map(str, argv)], 2 * SECONDS, stdin=subprocess.DEVNULL, **how)


@pytest.mark.parametrize("firmware, words, status", [("pvh", [], 0), ("microvm", ["and die"], 128 + 6)])
def test_what_a_program_prints_and_leaves_behind_arrives(built, kernel, files, tmp_path, firmware, words, status):
    """Every byte of its output, and each file that is new, renamed or changed, also if it dies."""
    for name in ("old", "mapped", "same"):
        (files / "dir" / name).write_text(f"contents of {name}")
    path, out = built("-static", source=ROOT / "tests/programs/leaves.c"), tmp_path / "out"
    (tmp_path / "ashlar.elf").symlink_to(kernel)
    argv = ["--build", tmp_path, "--firmware", firmware, "--cpus", "1", "--mem", "128M", "--program", shlex.join([str(path), *words])]
    done = launch(*argv, "--files", files.name, "--files-out", out, cwd=tmp_path, text=False, errors=None)
    assert done.returncode == status, done
    assert bytes(range(256)) * 2 in done.stdout, done.stdout
    found = {p.relative_to(out).as_posix(): (p.stat().st_mode & 0o777, p.read_bytes()) for p in out.rglob("*") if p.is_file()}
    assert found == {
        "new/all": (0o750, bytes(range(256)) * 2),
        "hole": (0o600, bytes(1000001) + b"end"),
        "dir/text": (0o644, b"Text\n"),
        "dir/moved": (0o644, b"contents of old"),
        "dir/mapped": (0o644, b"Montents of mapped"),
    }


def test_an_image_of_files_leaves_the_folder_alone(tmp_path):
    """Names and lengths that lie are refused, and so is whatever random damage makes of them."""
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    out.mkdir()
    (out / "link").symlink_to(elsewhere)
    (out / "file").symlink_to(elsewhere / "file")
    image = cpio_entry("a/file", 0o104711, b"abc") + cpio_entry("file", 0o100600, b"d") + cpio_trailer()
    assert files_out.bring(image * 2, out) == (4, 8)
    assert (out / "a/file").read_bytes() == b"abc" and (out / "a/file").stat().st_mode & 0o7777 == 0o711
    assert not (out / "file").is_symlink()
    wrong = [image[:-4], image[:-1] + b"x" * 9, b"070701", b"x" * 200, image[:100], cpio_entry("a", 0o120777, b"b") + cpio_trailer()]
    names = ("../x", "/x", "a/../x", "a/./x", "a//x", "..", "", "link/x")
    for data in wrong + [cpio_entry(name, 0o100644) + cpio_trailer() for name in names]:
        with pytest.raises(files_out.Refused):
            files_out.bring(data, out)
    random_ = random.Random(1)
    for _ in range(3000):
        data = bytearray(image)
        for _ in range(random_.randrange(1, 4)):
            data[random_.randrange(len(data))] = random_.choice(b"/.0f7\0xa")
        try:
            files_out.bring(data[: random_.choice((len(data), random_.randrange(len(data))))], out)
        except (files_out.Refused, OSError):
            pass
    assert not list(elsewhere.iterdir()) and not (tmp_path / "x").exists()


def test_make_run_names_what_it_cannot_pass(tmp_path, built):
    for args, says in (
        (["--program", "/no/such"], "PROGRAM=/no/such: no such file"),
        (["--program", str(tmp_path)], "no such file"),
        (["--files", "x"], "FILES is given without PROGRAM"),
        (["--files-out", "x"], "FILES_OUT is given without PROGRAM"),
        (["--program", "HOME=/"], "PROGRAM=HOME=/: it names no program"),
        (["--program", str(SOURCE)], f"PROGRAM={SOURCE}: it is no ELF file"),
        (["--program", str(built("-static")), "--files", "/no/such"], "FILES=/no/such: no such file or folder"),
        (["--program", f"{SOURCE} it's"], f"PROGRAM={SOURCE} it's: No closing quotation"),
        (["--program", "/usr/bin/ldd /bin/true"], "PROGRAM=/usr/bin/ldd: it is a script: run /bin/bash with"),
        (["--cmdline", "x" * 5000], "the kernel reads 4095"),
    ):
        done = launch("--print", "--build", str(tmp_path), *args)
        assert done.returncode == 2 and says in done.stderr, done


def names_of(image):
    return set(image.entries) - {"proc/self/cmdline", "proc/self/environ"}


def test_files_have_the_paths_that_their_words_say(built, files, tmp_path, monkeypatch):
    """A relative folder's contents and those of FOLDER/. lie in /, what has an absolute path keeps it, and links are kept with it."""
    path, inside = str(built("-static")), {"dir", "dir/empty", "dir/text", "link"}
    monkeypatch.chdir(tmp_path)
    for word in ("files", "files/", f"{files}/."):
        assert names_of(Program(path, files=word).image()) == {Path(path).name} | inside
    os.utime(files / "dir/text", (1000, 1000))
    data = Program(path, files="files").image().data()
    assert data[data.index(b"dir/text\0") - 64 :][:8] == b"000003e8", "the date of a file"
    kept = str(files)[1:]
    assert names_of(Program(path, files=str(files)).image()) == {Path(path).name, kept} | {f"{kept}/{name}" for name in inside}
    assert names_of(Program(path, files="files/dir/text").image()) == {Path(path).name, "text"}
    assert names_of(Program(path, files=f"{files}/link").image()) == {Path(path).name, f"{kept}/link", f"{kept}/dir/text"}
    (tmp_path / "one two").write_text("")
    assert names_of(Program(path, files="files 'one two'").image()) == {Path(path).name, "one two"} | inside
    (tmp_path / Path(path).name).write_text("another")
    with pytest.raises(Unusable, match="two different files would have the name"):
        Program(path, files=Path(path).name).image()


def test_files_below_a_link_lie_where_it_leads(built, files, tmp_path):
    """The kernel makes files before it follows links."""
    (tmp_path / "kept/real").mkdir(parents=True)
    (tmp_path / "kept/link").symlink_to("../kept/./real")
    over = tmp_path / "over"
    (over / str(tmp_path / "kept/link")[1:]).mkdir(parents=True)
    (over / str(tmp_path / "kept/link/file")[1:]).write_text("")
    names = names_of(Program(str(built("-static")), files=f"{over}/. {tmp_path}/kept/link {tmp_path}/kept").image())
    assert str(tmp_path / "kept/real/file")[1:] in names and str(tmp_path / "kept/link/file")[1:] not in names, names


@pytest.fixture
def dynamic(tmp_path):
    """A program that prints what functions of its libraries return. `late` is found by the RUNPATH of `near`; `early` must be preloaded."""

    def build(name, source, *flags):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.with_suffix(".c").write_text(source)
        subprocess.run(["gcc", "-O1", str(path.with_suffix(".c")), "-o", str(path), *flags], check=True, timeout=600)
        return path

    def library(name, returns, folder, *flags):
        source, soname = f"int {name}(void) {{ return {returns}; }}", f"-Wl,-soname,lib{name}.so"
        return build(f"{folder}/lib{name}.so", source, "-shared", "-fPIC", soname, *flags)

    late = library("late", 7, "far")
    run_path = ("-Wl,--enable-new-dtags", "-Wl,-rpath,${ORIGIN}/../far", "-Wl,--no-as-needed")
    near = build("near/libnear.so", "int late(void); int near(void) { return 10 * late(); }", "-shared", "-fPIC", str(late), *run_path)
    early = library("early", 3, "other")
    main = "#include <stdio.h>\n__attribute__((weak)) int early(void); int near(void);\n"
    main += 'int main(int n, char **words) { printf("%d %d\\n", near(), early ? early() : 0); return n > 1 ? puts((char *)8) : 0; }'
    program = build("main", main, str(near), "-Wl,-rpath,$ORIGIN/near", "-fPIE", "-pie")
    return program, near, late, early


def test_libraries_are_found_as_the_dynamic_linker_finds_them(dynamic, kernel, tmp_path):
    program, near, late, early = dynamic
    asks = Program(str(program), env=f"LD_PRELOAD={early.name} LD_LIBRARY_PATH=/none:{early.parent}")
    paths = {str(path)[1:] for path in (program, near, late, early)}
    assert paths <= names_of(asks.image()) and str(early)[1:] not in names_of(Program(str(program)).image())
    outcome = run(with_program(asks, tmp_path), kernel, SECONDS)
    assert "70 3" in outcome.ended().lines, outcome.report()


def test_the_death_of_a_dynamic_program_names_the_library(dynamic, kernel, tmp_path):
    outcome = run(with_program(Program(str(dynamic[0]), "crash"), tmp_path), kernel, SECONDS)
    outcome.ended("fail").says(r"  8 is a NULL pointer", r"  at [0-9a-f]+ /\S+/libc.so.6\+0x[0-9a-f]+$", r"status=139$")


def test_what_a_dynamic_program_lacks_is_named(dynamic, built, tmp_path):
    program, near, late, _ = dynamic
    late.write_bytes(late.read_bytes()[:18] + b"\xb7" + late.read_bytes()[19:])  # for AArch64: passed over
    with pytest.raises(Unusable, match=rf"the library liblate.so, which \S*{near.name} needs, is not on this machine"):
        Program(str(program)).image()
    with pytest.raises(Unusable, match="it is for another machine than x86-64"):
        Program(str(late)).image()
    near.unlink()
    with pytest.raises(Unusable, match=rf"the library \S*libnear.so, which {program} needs, is not on this machine"):
        Program(str(program)).image()
    with pytest.raises(Unusable, match="its interpreter no-such.so is not on this machine"):
        Program(str(built("-Wl,--dynamic-linker=no-such.so"))).image()
    torn = tmp_path / "torn"
    for size in range(4, 400, 9):
        torn.write_bytes(program.read_bytes()[:size])
        with pytest.raises(Unusable, match="it is damaged or truncated|it is for another machine"):
            Program(str(torn)).image()


NUMBERS = "".join(f"{i * 379 % 1009} \u00e4\n" for i in range(1, 1001))
# Dynamic programs of this machine, with their arguments.
HERE = {
    "sort": ("/usr/bin/sort", "-n", "numbers"),
    "cat": ("/bin/cat", "-n", "numbers", "/etc/passwd"),
    "words": ("/bin/echo", "", "\u00e4 '\"\\\n", *(f"{i}" for i in range(5000)), "x" * 100_000),
    "missing": ("/usr/bin/sort", "no-such-file"),
}


@pytest.mark.parametrize("name", HERE)
def test_a_dynamic_program_ends_as_here(name, kernel, tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files/numbers").write_text(NUMBERS)
    path, *words = HERE[name]
    here = patience.run([path, *words], 60, cwd=tmp_path / "files", env={"LC_ALL": "C"})
    program = Program(path, shlex.join(words), f"{tmp_path}/files/. /etc/passwd", "LC_ALL=C")
    outcome = run(with_program(program, tmp_path), kernel, SECONDS)
    said = outcome.text[outcome.text.index("started 2 of 2 CPUs") :].partition("\n")[2]
    assert said.startswith(here.stdout + here.stderr), outcome.report()
    assert re.search(rf"^PROGRAM name=\S+ status={here.returncode}$", said, re.M), outcome.report()


def test_too_many_words_are_refused(built, kernel, tmp_path):
    outcome = run(with_program(Program(str(built("-static")), "x " * 300_000), tmp_path), kernel, SECONDS)
    outcome.ended("fail").says(r"its arguments and environment take 3000\d+ bytes, more than 2097152")


# Their memory and status. Most were a crash, a hang or a leak of the kernel once.
HOSTILE = {"crash": ("256M", 139), "status": ("256M", 3), "full": ("128M", 0), "sparse_move": ("256M", 0), "long_look": ("1G", 0)}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile(case, built, kernel, tmp_path):
    """It ends with that status, and nothing is lost."""
    mem, status = HOSTILE[case]
    path = built("-static", "-pthread", source=ROOT / "tests/programs/hostile.c")
    outcome = run(with_program(Program(str(path), case), tmp_path, cpus=4, mem=mem), kernel, SECONDS).ended("fail" if status else "pass")
    assert f"PROGRAM name={path.name} status={status}" in outcome.lines and "leaks:" not in outcome.text, outcome.report()


PIE_BASE, USER_END = 0x555555554000, 0x7FFFFFFFF000
# Type of file (2: fixed, 3: pie); address, size and rights (4: read) of a segment besides the one with code.
HOSTILE_FILES = {
    "straddles": (3, USER_END - PIE_BASE - 0x1000, 0x100000002000, 4),
    "beyond": (3, 0x600000000000, 0x1000, 4),
    "wraps": (3, 0x10000, 2**64 - 0x10000 - PIE_BASE, 4),
    "not_canonical": (3, 0x800000000000, 0x1000, 4),
    "kernel": (2, 0xFFFF888000000000, 0x1000, 4),
    "all": (3, 0x10000, USER_END, 6),
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
    for name, load in HOSTILE_FILES.items():
        (files / name).write_bytes(hostile_elf(*load))
    (files / "good").write_bytes(hostile_elf(3, 0x10000, 2**36, 4))
    for path in files.iterdir():
        path.chmod(0o755)
    with Session(with_program(Program(str(built("-static")), files=f"{files}/."), tmp_path, "monitor"), kernel) as session:
        for name, (_, at, _, _) in HOSTILE_FILES.items():
            said = session.command(f"program {name}")
            assert f"program: {name}: a segment ends above the addresses of programs ({at:x})" in said, said
            assert f"program: {name} was not started" in said, said
            assert "every frame accounted for" in session.command("mem check")
            assert "PROGRAM name=good status=7" in session.command("program good")
        passes(session.poweroff())


def test_the_monitor_runs_programs_again_and_again(built, kernel, tmp_path):
    """Whatever ends a program, the monitor goes on, nothing is lost, and the next one starts."""
    path = built("-static", "-pthread", source=ROOT / "tests/programs/interrupt.c")
    with Session(with_program(Program(str(path), "3", f"{path.parent}/."), tmp_path, "monitor", 4, "512M"), kernel) as session:
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


def test_a_program_that_is_not_started_leaves_nothing_behind(built, kernel, tmp_path):
    """There is no memory for the queue: the device is not driven, and no timer looks for Ctrl-C."""
    path = built("-static", "-pthread", source=ROOT / "tests/programs/interrupt.c")
    machine = replace(with_program(Program(str(path)), tmp_path, "monitor debug.fail=1"), out=str(tmp_path / "out"))
    with Asked(machine, kernel) as session:
        assert "there are no 3 free pages for the queue; the program is not started" in session.command(f"program {path.name}")
        assert session.ask("x-query-virtio-status", path=session.ask("x-query-virtio")[0]["path"])["status"]["statuses"] == []
        assert "pass:1 fail:0" in session.command("test program.timers.*")


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
