"""Types at the monitor over a pty: every command, editing, completion, Ctrl-C, any bytes; and runs the same from the command line."""

import os
import random
import re

import pytest
from guest import Session, run
from machine import Machine

# The answer that each command must give, in the order of typing. Every command of `help` needs a line here.
COMMANDS = (
    ("help", r"help +this list"),
    ("help pool", r"grow, shrink"),
    ("machine", r"4 found, 4 started"),
    ("mem", r"= RAM"),
    ("mem zones", r"node 0 +NORMAL +4096"),
    ("mem nodes", r"node 0: \d+ MiB, metadata memory of node 0"),
    ("cpus", r"3 +0 idle"),
    ("set hvo", r"hvo +on "),
    ("set hvo=batched; set hvo", r"hvo +batched "),
    ("set hvo=on", r"^$"),
    ("balloon", r"there is no balloon"),
    ("pool 2M 64", r"64 pages, 64 free, 0 in use"),
    ("pool 2M grow 6 node=0", r"grow 2M: 6 pages"),
    ("map 140M 2M pool; pool 2M shrink 1", r"refused: 1 pages fewer than asked for: 70 pages are in use"),
    ("pool 2M 0", r"70 pages, 0 free, 70 in use, 0 promised, 70 surplus"),
    ("map unmap; pool 2M", r"0 pages, 0 free"),
    ("pool 2M overcommit 3; map 8M 2M pool; map 6M 2M pool", r"(?s)of at most 3.*map: failed: no .*3 pages of 2048 KiB are"),
    ("map unmap; pool 2M overcommit 0", r"0 pages, 0 free.*of at most 0"),
    ("pool 1G 2; pool 1G demote 1; pool", r"(?s)2M: 512 pages.*1G: 1 pages"),
    ("pool", r"(?m)2M: .* \d{4} frames of struct pages saved$(.*\n)*.*1G: .* 4087 frames of struct pages saved$"),
    ("pool 1G 0; pool 2M 0", r"0 pages, 0 free"),
    ("page 0x200", r"reserved for firmware|frame 0x200: reserved"),
    ("page 0xffff888000200000", r"(1G|2M|4K) entry [0-9a-f]{16} maps frame 0x"),
    ("page alloc 3 count=5", r"and 1 more"),
    ("page free", r"5 pages freed"),
    ("tour", r"(?s)1\. Bare to huge.*8\. The restore"),
    ("map 64M 2M; map", r"(?s)mapped at 0x\w+000: 32 pages of 2048 KiB are there and zero.*32 of 2M"),
    ("map unmap", r"1 mappings given back"),
    ("page contig 12", r"(?s)search index: \d+ struct pages read.*\d+ metadata frames emptied, \d+ rounds.*given back again"),
    ("mem stats", r"unopened  -> bare"),
    ("log 100", r"unopened|->|ashlar>"),
    ("bench hvo pages=16", r"BENCH hvo mode=on source=\w+ op=free size=2M pages=16 done=16"),
    ("test kernel.words.*", r"# kernel.words: pass:\d+ fail:0 skip:0"),
    ("program", r"the loader passed no program"),
    ("program a.out 1", r'no program "a.out"'),
    ("start", r"BENCH hvo mode=on source=\w+ op=free"),
    ("mem why 1G", r"(?s)GiB 0: holes.*GiB \d+: frame 0x\w+: metadata memory.*now \d+ GiB cannot become pages, \d+ can, with \d+ frames"),
    ("pool 1G 10", r"(?s)pages fewer than asked for.*GiB 0: holes.*: metadata memory\n  now \d+ GiB cannot become pages, 0 can"),
    ("pool 1G 0; page alloc 9 unmovable count=9999", r"no memory is left"),
    ("page contig 18; page free", r"(?s)found no range.*a page in use that cannot move, of cmd_alloc\+0x\w+ on CPU \d.*but less than 1 GiB is free in all"),
    ("mem check", r"every frame accounted for"),
    ("frobnicate", r'no command "frobnicate"'),
    ("help options", r"(?m)^  bench\.hvo\.pages +4096 .*\n(.*\n)*  tlb\.skip_idle +on "),
    ("pool 5M", r'"5M"'),
)
WAYS_OUT = {"poweroff", "reboot"}


@pytest.fixture
def session(kernel):
    with Session(Machine("pvh", 4, "6G", cmdline="monitor debug.page_owner=on"), kernel) as opened:
        yield opened


def test_every_command_answers(session):
    known = re.findall(r"^  (\w+) +\S", session.command("help"), re.M)
    typed = {part.split()[0] for line, _ in COMMANDS for part in line.split(";")}
    assert set(known) - typed - WAYS_OUT == set(), "these commands have no line in COMMANDS"
    for line, answer in COMMANDS:
        said = session.command(line, 120)
        assert re.search(answer, said), f"{line!r} says:\n{said}"


def test_editing_history_and_completion(session):
    session.send("mem zone\x1b[D\x1b[D\x1b[Dx\x1b[D\x1b[3~\x1b[H\x05s\r")  # an x typed and deleted, start, end
    assert "zone 0: frames" in session.prompt()
    session.send("\x1b[A\x15me\x1b[B\x15\x1b[A\r")  # up, killed, typed, down, killed, up again
    assert "zone 0: frames" in session.prompt()
    session.send("hel\tpoo\t\r")
    assert "huge page pools" in session.prompt()
    session.send("po\t\t")
    session.expect(r"\n +pool +poweroff")
    session.prompt()
    session.send("o\t\r")  # "po" stands there again: now only pool is possible
    assert "2M: 0 pages" in session.prompt()
    session.send("set hvo=b\t; set hvo\r")
    assert re.search(r"hvo +batched ", session.prompt())
    session.send("mem and much more\x03")
    session.prompt()
    session.send("test kernel.wor\tbl\t\r")
    assert "pass:1 fail:0" in session.prompt()


def test_ctrl_c_stops_what_runs(session):
    session.send("test kernel.*,mm.block.*\r")
    session.expect(r"  ok 3 ")
    session.send("\x03")
    assert "Bail out! stopped by Ctrl-C" in session.prompt(120)
    session.send("pool 2M 8; bench hvo pages=64 source=all; pool\r")
    session.expect(r"off +grow")
    session.send("\x03")
    assert "the remaining commands were stopped by Ctrl-C" in session.prompt(120)
    assert "every frame accounted for" in session.command("pool 2M 0; mem check")


# The line to type, the output after which to press Ctrl-C, and the output that only a complete run would print.
STOPPED = [
    ("bench memmap", r"ways in turn", r"beside a plain clear|what=all"),
    ("bench clear", r"size insn", r"size=1G"),
    ("bench pcp", r"Batches of", r"ours : before"),
    ("bench fault bytes=64M", r" 2M +erms +4K +1 ", r"cpus=[248] .* run=[2-7] "),
    ("bench contig memory=fresh", r"memory fresh", r"mode=index"),
]


def test_ctrl_c_stops_benchmarks_between_rows(session):
    """Stopped benchmarks give back the memory that they hold, restore the switches that they set, and record the figures that they
    measured."""
    for line, when, rest in STOPPED:
        session.send(line + "\r")
        session.expect(when)
        session.send("\x03")
        said = session.prompt(60)
        assert not re.search(rest, said) and "failed" not in said, f"{line}:\n{said}"
    assert "every frame accounted for" in session.command("mem check", 60)


def test_ctrl_c_during_a_grow_of_100000_pages(kernel):
    """One flush round for each page takes long enough to be stopped. The part that was grown until then is a sound pool."""
    with Session(Machine("pvh", 8, "256G", cmdline="monitor hvo=unbatched"), kernel) as session:
        session.send("pool 2M grow 100000\r")
        session.expect(r"grow: \d+ of 100000 pages, \d+/s, \d+\.\d s left")
        session.send("\x03")
        said = session.prompt(60)
        assert re.search(r"stopped by Ctrl-C after \d+ of 100000 pages", said), said
        grown = int(re.search(r"grow 2M: (\d+) pages", said)[1])
        assert 0 < grown < 100000
        assert f"2M: {grown} pages, {grown} free, 0 in use" in session.command("pool 2M")
        assert "every frame accounted for" in session.command("mem check", 120)


def test_any_bytes(session):
    """No bytes from the line crash or hang the monitor. Line ends are left out, because they might run `poweroff`."""
    noise = random.Random(20261121)
    for _ in range(40):
        line = bytes(noise.choice([b for b in range(256) if b not in (1, 4, 10, 13)]) for _ in range(100))
        os.write(session.child.child_fd, line + b"\x03")  # 1 would talk to QEMU
    os.write(session.child.child_fd, b"\x03frob\xffni;cate \"3\r")
    session.expect(r'no command "frob')
    session.expect(r'unfinished quote in "3"')
    session.prompt()
    assert "= RAM" in session.command("mem")


def test_reboot_is_no_verdict(kernel):
    with Session(Machine("pvh", 1, "128M", cmdline="monitor"), kernel) as session:
        session.send("reboot\r")
        assert session.finish(120).status == 0  # -no-reboot: QEMU ends


def test_commands_from_the_command_line(kernel):
    outcome = run(Machine("pvh", 4, "3G", cmdline='run="pool 2M 64; pool 2M 0; bench hvo pages=64; mem check"'), kernel, 120).ended()
    assert "# totals pass:4 fail:0" in outcome.text and "BENCH hvo mode=on" in outcome.text


def test_a_failing_command_fails_an_unattended_run(kernel):
    outcome = run(Machine("pvh", 1, "128M", cmdline='run="mem; pool 2M 4000; mem check"'), kernel, 120).ended("fail")
    assert "# totals pass:2 fail:1" in outcome.text
