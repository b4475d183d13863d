"""The build itself: it is reproducible and incremental, and asks before it installs packages."""

import os
import re
import shutil
import subprocess

import pytest
import typed
from machine import ROOT

MINUTES = 6


def make(folder, *args):
    """The output of make, which must succeed and print no warning."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "BUILD", "TOOLS"))}
    done = subprocess.run(
        ["make", *args], cwd=folder, env=environment, capture_output=True, text=True, timeout=60 * MINUTES, check=False
    )
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


def test_help_names_everything():
    """Every target and every variable of the Makefile has its line in make help, and there are few."""
    text, source = make(ROOT, "help"), typed.makefiles()
    targets = set(re.findall(r"^(?:(?:test|bench)/)?([a-z-]+):(?: |$)", source, re.M)) - {"kernel", "all", *unlisted_targets(source)}
    variables = set(re.findall(r"^([A-Z_]+) \?=", source, re.M)) - typed.UNLISTED
    missing = [name for name in targets | variables if not re.search(rf"^  {name}\s", text, re.M)]
    assert not missing
    shown = {part[0]: len(part) - 1 for part in (block.splitlines() for block in text.strip().split("\n\n"))}
    assert shown["Targets:"] <= 18 and shown["Variables:"] <= 20, shown


def unlisted_targets(source):
    """Targets that say what replaces them, and builds of the hosted machine, which `host` names together."""
    return {*re.findall(r"^([a-z-]+): ; ", source, re.M), *re.findall(r"^(host-[a-z]+):", source, re.M)}


@pytest.fixture
def bare(tmp_path):
    """A PATH with only the basic tools, and an apt-get that records its arguments."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "awk", "cat", "mktemp", "tail", "rm", "env", "touch"):
        (folder / name).symlink_to(shutil.which(name))

    def script(name, text):
        (folder / name).write_text("#!/bin/sh\n" + text)
        (folder / name).chmod(0o755)

    script("id", "echo 1000")

    def deps(**environment):
        return subprocess.run(
            [folder / "sh", ROOT / "tests/setup/deps.sh", "run"],
            env={"PATH": str(folder), "TMPDIR": str(tmp_path), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return folder, script, deps


def test_setup_elsewhere_names_the_tools(bare):
    _, _, deps = bare
    done = deps()
    assert done.returncode == 2
    assert "gcc" in done.stderr and "qemu-system-x86" in done.stderr and "no apt" in done.stderr


def test_setup_without_root_prints_the_line(bare):
    folder, script, deps = bare
    script("apt-get", f"touch {folder}/called")
    done = deps(YES="1")
    assert done.returncode == 2
    assert re.search(r"^As root, type: apt-get install -y .*\bgcc\b", done.stderr, re.M)
    assert not (folder / "called").exists()


def test_setup_as_root_installs_what_is_missing(bare):
    folder, script, deps = bare
    script("id", "echo 0")
    script("gcc", "")
    script("apt-get", f'echo "$@" >> {folder}/asked')
    done = deps(YES="1")
    asked = (folder / "asked").read_text()
    assert "qemu-system-x86" in asked and not re.search(r"\bgcc\b", asked)
    assert done.returncode == 2 and "still not found" in done.stderr  # this apt-get installs nothing


def test_setup_failure_of_apt_is_told(bare):
    folder, script, deps = bare
    script("id", "echo 0")
    script("apt-get", 'case "$1" in install) echo E: no space; exit 100;; esac')
    done = deps(CI="true")
    assert done.returncode == 2 and "no space" in done.stderr
