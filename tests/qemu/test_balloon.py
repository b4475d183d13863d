"""Memory that goes back to the host: QEMU's own resident memory, as /proc shows it, falls when a guest with the device has freed memory."""

import os
import re
import struct
import subprocess
import time
from functools import partial

import patience
import pytest
from guest import Guest, Session, process_kib, run
from machine import ROOT, Machine
from program import Program

MIB, WARM = 1024, 8
FRAME, FRAMES = 4096, 512  # bytes of a frame, frames of a block
DEVICE = "/machine/peripheral/balloon"
PAGES = int(os.environ.get("BALLOON_PAGES", "600"))  # 2 MiB pages of the pool
GIB = PAGES // 400 + 3  # RAM of the guest
GROWN = PAGES * 2 * MIB  # KiB that the guest touches


class Asked(Session):
    asked = True


def opened(kernel, cpus, mem=f"{GIB}G", firmware="pvh"):
    return Asked(Machine(firmware, cpus, mem, cmdline="monitor", balloon=True), kernel)


def resident(guest):
    return process_kib(guest.child.pid, "VmRSS")


def grow_touch_shrink(session, pages):
    """A pool of 2 MiB pages is made, mapped, touched and given up. Returns what QEMU had at the most."""
    session.command(f"pool 2M {pages}")
    assert f"{pages} pages of 2048 KiB are there and zero" in session.command(f"map {2 * pages}M 2M pool", 300)
    most = resident(session)
    session.command("map unmap")
    session.command("pool 2M 0")
    return most


def time_until(condition):
    """Wait until a function returns true. Returns the milliseconds that it took, or None."""
    start = time.monotonic()
    return round((time.monotonic() - start) * 1000) if patience.until(condition, 20, pause=0.005) else None


def resident_frames(session, ram, low):
    """{number of a block of 2 MiB of the guest: how many of its frames the host has}. RAM behind that of `low` blocks begins at 4 GiB."""
    with open(f"/proc/{session.child.pid}/maps", encoding="ascii") as maps:
        spans = [[int(end, 16) for end in line.split()[0].split("-")] for line in maps]
    start = max((end - start, start) for start, end in spans if end - start >= ram)[1]
    blocks = {}
    with open(f"/proc/{session.child.pid}/pagemap", "rb") as pagemap:
        pagemap.seek(start // FRAME * 8)
        for block in range(ram // FRAME // FRAMES):
            words = struct.unpack(f"<{FRAMES}Q", pagemap.read(8 * FRAMES))
            blocks[block if block < low else block + 2048 - low] = sum(word >> 63 for word in words)
    return blocks


def messages_of(session):
    return int(re.search(r"(\d+) messages in all", session.command("balloon"))[1])


def goes_back(kernel, cpus, firmware="pvh", low=1024):
    """All of it and the metadata memory that described it, without a command, in few messages. A small pool comes first, so that QEMU has
    translated the code. What QEMU itself has grown by meanwhile is not bounded here; the record has it."""
    with opened(kernel, cpus, firmware=firmware) as session:
        boot = resident(session)
        grow_touch_shrink(session, WARM)
        session.command("balloon report")
        before, messages = resident(session), messages_of(session)
        had = resident_frames(session, GIB << 30, low)
        most = grow_touch_shrink(session, PAGES)
        assert most > before + GROWN * 9 // 10, (before, most)
        ms = time_until(lambda: resident(session) <= before + GROWN // 100)
        shown = session.command("balloon")
        assert ms is not None, (before, most, resident(session), shown)
        all_ms = time_until(lambda: sum(resident_frames(session, GIB << 30, low).values()) <= sum(had.values()))
        after, has = resident(session), resident_frames(session, GIB << 30, low)
        messages = messages_of(session) - messages
        print(
            f"\nBENCH balloon pages={PAGES} cpus={cpus} boot_kib={boot} before_kib={before} most_kib={most} after_kib={after}"
            f" guest_before_kib={sum(had.values()) * 4} guest_after_kib={sum(has.values()) * 4} messages={messages} ms={ms} all_ms={all_ms}"
        )
        assert all_ms is not None, [session.command(f"page {block * FRAMES:#x}") for block in has if has[block] > had[block]]
        assert messages <= PAGES // (FRAMES // 2) + 8, messages  # half a GiB in each, and some
        grow_touch_shrink(session, WARM)  # memory that comes back is zero
        assert "every frame accounted for" in session.command("mem check", 120)


@pytest.mark.parametrize("firmware, low", [("pvh", 1024), ("microvm", 1536)], ids=["pvh", "microvm"])
def test_what_a_pool_touched_goes_back(kernel, firmware, low):
    goes_back(kernel, 4, firmware, low)


def test_one_cpu_needs_no_command(kernel):
    """The only CPU shows memory while it waits for a key."""
    goes_back(kernel, 1)


def what_a_program_had_goes_back(kernel, cpus, folder, words):
    """The program has 128 MiB of small pages, and takes ten seconds after it gave them up."""
    source, image = ROOT / "tests/programs/sleeps.c", folder / "sleeps"
    subprocess.run(["gcc", "-O1", "-static", "-pthread", str(source), "-o", str(image)], check=True, timeout=600)
    module = Program(image, words).write(folder / "program.cpio")
    with Guest(Machine("pvh", cpus, "1G", cmdline="program.thp=never", balloon=True, module=str(module)), kernel) as guest:
        assert guest.wait_for("^begins$", 60)
        before = resident(guest)
        assert guest.wait_for("^wakes$", 240)
        most = process_kib(guest.child.pid, "VmHWM")
        assert resident(guest) <= before + 128 * MIB // 20 < most, (before, most, resident(guest))


def test_the_only_cpu_shows_memory_while_a_program_sleeps(kernel, tmp_path):
    what_a_program_had_goes_back(kernel, 1, tmp_path, "128")


def test_a_cpu_that_sleeps_takes_the_place_of_an_idle_one(kernel, tmp_path):
    """It fell asleep while another was idle, which then was given a thread that computes."""
    what_a_program_had_goes_back(kernel, 3, tmp_path, "128 0 beside-threads")


def test_the_host_asks_for_memory_and_gives_it_back(kernel):
    """QEMU's monitor asks for a guest of 3 GiB of its 4, then for all of it."""
    with opened(kernel, 2, "4G") as session:
        assert re.search(r"balloon +0 MiB", session.command("balloon"))
        for asked in (3072, 4096):
            session.monitor(f"balloon {asked}")
            holds = re.compile(rf"balloon +{4096 - asked} MiB").search
            said = patience.until(lambda: session.command("balloon"), 30, holds)
            assert holds(said), said
        assert "every frame accounted for" in session.command("mem check", 120)


def told_figures(session):
    """What the host is told next."""
    session.ask("qom-set", path=DEVICE, property="guest-stats-polling-interval", value=1)
    ask = partial(session.ask, "qom-get", path=DEVICE, property="guest-stats")
    before = ask()["last-update"]
    told = patience.until(ask, 20, lambda told: told["last-update"] > before, 0.3)
    assert told["last-update"] > before, session.command("balloon")
    return told["stats"]


def test_the_host_is_told_how_much_is_free(kernel):
    with opened(kernel, 2, "4G") as session:
        for pages in (0, 600):
            session.command(f"pool 2M {pages}")
            told = told_figures(session)
            frames = {name: int(count) for name, count in re.findall(r"(free|unopened|RAM) +(\d+) frames", session.command("mem"))}
            assert told["stat-total-memory"] == frames["RAM"] * FRAME, (told, frames)
            assert abs(told["stat-free-memory"] - (frames["free"] + frames["unopened"]) * FRAME) < 4 * MIB * 1024, (told, frames)
            assert told["stat-available-memory"] == told["stat-free-memory"] and told["stat-swap-in"] == 0, told


@pytest.mark.parametrize("words, device", [("", False), ("balloon=off", True)])
def test_without_a_device_or_with_off_nothing_is_said(kernel, words, device):
    outcome = run(Machine("pvh", 2, "512M", cmdline=f"{words} run=balloon", balloon=device), kernel).ended().says("there is no balloon")
    assert "] balloon: " not in outcome.text
