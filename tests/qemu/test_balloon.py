"""Memory that goes back to the host: QEMU's own resident memory, as /proc shows it, falls when a guest with balloon=on has freed memory."""

import os
import re
import struct
import time

import patience
import pytest
from guest import Session, process_kib, run
from machine import Machine

MIB, WARM = 1024, 8
FRAME, FRAMES = 4096, 512  # bytes of a frame, frames of a block
DEVICE = "/machine/peripheral/balloon"
PAGES = int(os.environ.get("BALLOON_PAGES", "600"))  # 2 MiB pages of the pool
GIB = PAGES // 400 + 3  # RAM of the guest
GROWN = PAGES * 2 * MIB  # KiB that the guest touches


class Asked(Session):
    asked = True


def opened(kernel, cpus, mem=f"{GIB}G", firmware="pvh"):
    return Asked(Machine(firmware, cpus, mem, cmdline="balloon=on monitor", balloon=True), kernel)


def resident(session):
    return process_kib(session.child.pid, "VmRSS")


def grow_touch_shrink(session, pages):
    """A pool of 2 MiB pages is made, mapped, touched and given up. Returns what QEMU had at the most."""
    session.command(f"pool 2M {pages}")
    assert f"{pages} pages of 2048 KiB are there and zero" in session.command(f"map {2 * pages}M 2M pool", 300)
    most = resident(session)
    session.command("map unmap")
    session.command("pool 2M 0")
    return most


def falls_to(session, limit, seconds=20):
    """Wait until QEMU has no more than `limit`. Returns the milliseconds that it took, or None."""
    start, end = time.monotonic(), patience.now() + seconds
    while patience.now() < end:
        if resident(session) <= limit:
            return (time.monotonic() - start) * 1000
        time.sleep(0.005)
    return None


def resident_blocks(session, ram, low):
    """Numbers of the guest's blocks of 2 MiB of which the host has any memory. RAM behind that of `low` blocks begins at 4 GiB."""
    with open(f"/proc/{session.child.pid}/maps", encoding="ascii") as maps:
        spans = [[int(end, 16) for end in line.split()[0].split("-")] for line in maps]
    start = max((end - start, start) for start, end in spans if end - start >= ram)[1]
    blocks = []
    with open(f"/proc/{session.child.pid}/pagemap", "rb") as pagemap:
        pagemap.seek(start // FRAME * 8)
        for block in range(ram // FRAME // FRAMES):
            words = struct.unpack(f"<{FRAMES}Q", pagemap.read(8 * FRAMES))
            if any(word >> 63 for word in words):
                blocks.append(block if block < low else block + 2048 - low)
    return blocks


@pytest.mark.parametrize("firmware, low", [("pvh", 1024), ("microvm", 1536)], ids=["pvh", "microvm"])
def test_what_a_pool_touched_goes_back_and_what_stays_is_metadata_memory(kernel, firmware, low):
    """All but a hundredth. A small pool comes first, so that QEMU has translated the code. Blocks that are resident and were not before the
    pool are a few, and none of them is free."""
    with opened(kernel, 4, firmware=firmware) as session:
        grow_touch_shrink(session, WARM)
        session.command("balloon report")
        before, blocks = resident(session), resident_blocks(session, GIB << 30, low)
        most = grow_touch_shrink(session, PAGES)
        assert most > before + GROWN * 9 // 10, (before, most)
        ms = falls_to(session, before + GROWN // 100)
        shown = session.command("balloon report")
        now = resident(session)
        print(f"resident before {before // MIB} MiB, touched {most // MIB} MiB, after {now // MIB} MiB within {ms} ms;{shown}")
        assert ms is not None, (before, most, now, shown)
        new = [block for block in resident_blocks(session, GIB << 30, low) if block not in blocks]
        for block in new:
            said = session.command(f"page {block * FRAMES:#x}")
            print(f"\nblock {block} stays:{said}")
            assert re.search(r"block \d+: (meta|full), ", said), said
        assert len(new) <= PAGES // 1000 + 3, new
        grow_touch_shrink(session, WARM)  # memory that comes back is zero
        assert "every frame accounted for" in session.command("mem check", 120)


def test_one_cpu_needs_no_command(kernel):
    """The only CPU shows memory while it waits for a key."""
    with opened(kernel, 1) as session:
        grow_touch_shrink(session, WARM)
        time.sleep(1)
        before = resident(session)
        most = grow_touch_shrink(session, PAGES)
        assert most > before + GROWN * 9 // 10, (before, most)
        assert falls_to(session, before + GROWN // 100) is not None, (before, most, resident(session), session.command("balloon"))


def balloon_mib(session, wanted, seconds=30):
    """MiB in the balloon, once they are as many as wanted or the time is over."""
    end = patience.now() + seconds
    while True:
        held = int(re.search(r"balloon +(\d+) MiB", session.command("balloon"))[1])
        if held == wanted or patience.now() > end:
            return held
        time.sleep(0.1)


def test_the_host_asks_for_memory_and_gives_it_back(kernel):
    """QEMU's monitor asks for a guest of 3 GiB of its 4, then for all of it."""
    with opened(kernel, 2, "4G") as session:
        assert balloon_mib(session, 0) == 0
        session.monitor("balloon 3072")
        assert balloon_mib(session, 1024) == 1024
        session.monitor("balloon 4096")
        assert balloon_mib(session, 0) == 0
        assert "every frame accounted for" in session.command("mem check", 120)


def told_figures(session, seconds=20):
    end, seen = patience.now() + seconds, None
    session.ask("qom-set", path=DEVICE, property="guest-stats-polling-interval", value=1)
    while patience.now() < end:
        told = session.ask("qom-get", path=DEVICE, property="guest-stats")
        if seen is not None and told["last-update"] > seen:
            return told["stats"]
        seen = told["last-update"]
        time.sleep(0.3)
    return None


def test_the_host_is_told_how_much_is_free(kernel):
    with opened(kernel, 2, "4G") as session:
        for pages in (0, 600):
            session.command(f"pool 2M {pages}")
            told = told_figures(session)
            assert told is not None, session.command("balloon")
            frames = {name: int(count) for name, count in re.findall(r"(free|unopened|RAM) +(\d+) frames", session.command("mem"))}
            assert told["stat-total-memory"] == frames["RAM"] * FRAME, (told, frames)
            assert abs(told["stat-free-memory"] - (frames["free"] + frames["unopened"]) * FRAME) < 4 * MIB * 1024, (told, frames)
            assert told["stat-available-memory"] == told["stat-free-memory"] and told["stat-swap-in"] == 0, told


def test_a_machine_without_the_device_says_so(kernel):
    outcome = run(Machine("pvh", 2, "512M", cmdline="balloon=on run=balloon"), kernel)
    outcome.ended().says("this machine has no modern virtio-balloon device", "there is no balloon")


def test_off_looks_for_nothing(kernel):
    outcome = run(Machine("pvh", 2, "512M", cmdline="run=balloon", balloon=True), kernel).ended().says("there is no balloon")
    assert "] balloon: " not in outcome.text
