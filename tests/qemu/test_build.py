"""The build itself: it is reproducible and incremental, and asks before it installs packages."""

import re
import shutil
import subprocess

import pexpect
import pytest
import typed
from guest import run
from machine import ROOT, Machine, without_make

MINUTES = 6
HOST_BUILDS = re.compile(r"^(host-[a-z]+):", re.M)  # which `host` names together


def make(folder, *args):
    """The output of make, which must succeed and print no warning."""
    done = subprocess.run(["make", *args], cwd=folder, env=without_make(), capture_output=True, text=True, timeout=60 * MINUTES, check=False)
    assert done.returncode == 0, f"make {' '.join(args)}: {done.stderr[-3000:]}"
    assert "warning" not in (done.stdout + done.stderr).lower()
    return done.stdout


@pytest.mark.proof
def test_reproducible(copy, kernel):
    make(copy, "kernel", "BUILD=build/again")
    assert (copy / "build/again/ashlar.elf").read_bytes() == kernel.read_bytes()


def test_incremental(copy):
    """Nothing is built twice. A touched header rebuilds the files that include it and no others."""
    assert "  CC " not in make(copy, "kernel")
    rooms = ("boot", "arch", "kernel", "mm", "tests/kernel", "tests/bench")  # programs of users may have left objects beside them
    users = sum("kernel/core/padata.h" in d.read_text() for room in rooms for d in (copy / "build/kernel" / room).rglob("*.d"))
    (copy / "kernel/core/padata.h").touch()
    assert make(copy, "kernel").count("  CC ") == users > 0


def shared(*objects):
    """The names that other files can use."""
    lines = subprocess.run(["nm", "--defined-only", "-g", *objects], capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[-1] for line in lines if len(line.split()) == 3}


def test_a_kernel_without_programs(copy, kernel):
    """PROGRAM=no leaves kernel/program and its cases out of the kernel and of the library, and nothing else misses them."""
    objects = [path for path in (copy / "build/kernel/kernel/program").glob("*.o") if (ROOT / "kernel/program" / path.stem).exists()]
    theirs = shared(*objects)
    assert len(theirs & shared(kernel)) > 300 and b"kernel/program" in kernel.read_bytes()
    make(copy, "kernel", "lib", "PROGRAM=no")
    for path in (copy / "build/ashlar.elf", copy / "build/libashlar.a"):
        assert not theirs & shared(path) and b"kernel/program" not in path.read_bytes()
    names = subprocess.run(["nm", "-g", copy / "build/libashlar.a"], capture_output=True, text=True, check=True).stdout.split()
    assert "payload_of_room" not in names
    run(Machine("pvh", 2, "1G", cmdline="test=mm.page.*,kernel.words.*"), copy / "build/ashlar.elf", 60 * MINUTES).ended()
    assert " LD " in make(copy, "kernel") and theirs < shared(copy / "build/ashlar.elf")


def test_a_kernel_that_reaches_8_mib_is_not_linked(kernel, tmp_path):
    """QEMU's UEFI would not start it."""
    assert "0000000000800000 A __image_end_most" in subprocess.run(["nm", kernel], capture_output=True, text=True, check=True).stdout
    for kib, fits in ((6128, True), (6144, False)):  # and its code
        (tmp_path / "x.S").write_text(f".globl multiboot2_entry\nmultiboot2_entry: nop\n.bss\n.skip {kib} << 10\n")
        subprocess.run(["as", tmp_path / "x.S", "-o", tmp_path / "x.o"], check=True)
        words = ["-m", "elf_x86_64", "-static", "-T", ROOT / "linker.ld", tmp_path / "x.o", "-o", tmp_path / "x.elf"]
        assert subprocess.run(["ld", *words], check=False).returncode == 0
        done = subprocess.run(["ld", "--defsym=__image_end_most=0x800000", *words], capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == fits and ("the image ends above 8 MiB" in done.stderr) != fits, done.stderr


def test_a_terminal_is_shown_what_is_compiled_in_one_line(copy):
    make(copy, "kernel")
    for name in ("mm/hvo/hvo.c.o", "kernel/lib/words.c.o", "kernel/lib/string.c.o"):
        (copy / "build/kernel" / name).unlink()
    text = pexpect.run("make -j1 kernel", cwd=copy, env={**without_make(), "TERM": "xterm"}, timeout=60 * MINUTES).decode()
    assert re.findall(r"\r\x1b\[K  CC +(\d of 3) \S+\.c\r(?!\n)", text) == ["1 of 3", "2 of 3", "3 of 3"], text
    assert re.search(r"\r\x1b\[K  LD +build/ashlar.elf\r\n$", text), text


def test_help_names_everything():
    """Every target and every variable of the Makefile has its line in make help, and there are few."""
    text, source = make(ROOT, "help"), typed.makefiles()
    targets = set(re.findall(r"^(?:(?:test|bench)/)?([a-z-]+):(?: |$)", source, re.M)) - {"kernel", "all", *HOST_BUILDS.findall(source)}
    variables = set(re.findall(r"^([A-Z_]+) \?=", source, re.M)) - typed.UNLISTED
    missing = [name for name in targets | variables if not re.search(rf"^  {name}\s", text, re.M)]
    assert not missing
    shown = {part[0]: len(part) - 1 for part in (block.splitlines() for block in text.strip().split("\n\n"))}
    assert shown["Targets:"] <= 18 and shown["Variables:"] <= 20, shown


SETUP = {  # the user, what apt-get does, and what is said
    "no-apt": ("1000", None, "This system has no apt: please install these tools yourself"),
    "no-root": ("1000", "", r"(?m)^As root, type: apt-get install -y .*\bqemu-system-x86\b"),
    "nothing-came": ("0", "", "Installed, yet still not found"),
    "apt-fails": ("0", 'case "$1" in install) echo E: no space; exit 100;; esac', "E: no space"),
}


@pytest.mark.parametrize("system", SETUP)
def test_setup_installs_what_is_missing_or_says_why_not(tmp_path, system):
    """On a PATH with only the basic tools and gcc, and an apt-get that records its arguments."""
    user, apt, says = SETUP[system]
    folder, asked = tmp_path / "bin", tmp_path / "asked"
    folder.mkdir()
    for name in ("sh", "awk", "cat", "mktemp", "tail", "rm", "env"):
        (folder / name).symlink_to(shutil.which(name))
    scripts = {"gcc": "", "id": f"echo {user}"} | ({} if apt is None else {"apt-get": f'echo "$@" >>{asked}\n{apt}'})
    for name, text in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    argv, environment = [folder / "sh", ROOT / "tests/setup/deps.sh", "run"], {"PATH": str(folder), "TMPDIR": str(tmp_path), "YES": "1"}
    done = subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 2 and re.search(says, done.stderr), done.stderr
    assert "qemu-system-x86" in done.stderr and not re.search(r"\bgcc\b", done.stderr)
    assert asked.exists() == (user == "0") and (user != "0" or "qemu-system-x86" in asked.read_text())
