"""Programs of users: the examples do what they say. The commands are from tests/payload/README.md."""

import os
import re
import subprocess

from guest import Session, run
from machine import ROOT, Machine
from matrix import BY_INSTRUCTIONS
from test_build import make

SECONDS = 120


def end(kernel, cmdline="", mem="5G", cpus=4, **more):
    outcome = run(Machine("pvh", cpus, mem, cmdline=cmdline, **more), kernel, SECONDS).ended()
    return outcome.text


def spelled(build):
    """The path in the spelling of `make test`, because another spelling would build everything again."""
    return f"BUILD={os.path.relpath(build, ROOT)}"


def payload(build, name):
    make(ROOT, spelled(build), f"PAYLOAD=tests/payload/{name}")
    return build / f"payload/{name}/ashlar.elf"


def gups_rows(text):
    return re.findall(r"(?m)^  (\w+) +(\d+) .* every word is zero again", text)


def test_gups(build):
    kernel, sizes = payload(build, "gups"), ("4K", "2M", "1G")
    text = end(kernel, "gups_mib=64 gups_updates=200000")
    assert re.findall(r"^RESULT gups leaf=(\w+) cpus=(\d)", text, re.M) == gups_rows(text) == [(s, c) for c in "14" for s in sizes]
    old = end(kernel, "gups_mib=64 gups_updates=1000", cpus=1, cpu="max,pdpe1gb=off")  # a CPU without mappings of 1 GiB
    assert gups_rows(old) == [("4K", "1"), ("2M", "1")]
    small = end(kernel, "gups_mib=2 gups_updates=1000", mem="512M", cpus=1)  # no GiB in one piece
    assert gups_rows(small) == [("4K", "1"), ("2M", "1")]


def test_devices(build):
    """By instructions, because the program sets a timer for 2 ms and at once another one, which must be refused."""
    assert end(payload(build, "devices"), mem="256M", accel=BY_INSTRUCTIONS).count(" ok\n") == 3


def test_a_linked_program_is_started_again_and_again(build):
    kernel = payload(build, "gups")
    with Session(Machine("pvh", 4, "512M", cmdline="monitor gups_mib=2 gups_updates=1000"), kernel) as session:
        for _ in range(3):
            said = session.command("start", SECONDS)
            assert gups_rows(said) == [(size, cpus) for cpus in "14" for size in ("4K", "2M")], said
            assert "every frame accounted for" in session.command("mem check")
        outcome = session.poweroff().ended()
        assert "# totals pass:13 fail:0" in outcome.text, outcome.report()  # 3 x 4, and the session


def test_an_empty_folder_is_named(tmp_path, build):
    done = subprocess.run(
        ["make", spelled(build), f"PAYLOAD={tmp_path}"], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 2 and "no *.c, *.S, *.cpp or *.cc is there" in done.stderr
