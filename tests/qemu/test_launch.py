"""`make run`: the terminal is as it was before, however the run ends, and a guest that KVM cannot run does not stop it."""

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from types import SimpleNamespace

import launch
import patience
import pytest
import records
from machine import ROOT

LAUNCH = [sys.executable, str(ROOT / "tests/qemu/launch.py")]
# With a KVM that is there, as far as can be seen.
WITH_KVM = "import sys, launch, machine; machine.kvm_usable = lambda: True; sys.exit(launch.main())"
NO_WRAP = b"\x1b[?7l"
# SeaBIOS moves the cursor, at any of its timer's ticks, between two letters: "Welcome to GRU^[[03;14H^[[03;15HB!".
MOVE = re.compile(rb"\x1b\[[0-9;]*H")
PASS = "\r\nASHLAR-BEGIN\r\nASHLAR-END verdict=pass code=0x10"
SECONDS = 120

# What QEMU and its firmware do to a terminal, then {end}.
QEMU = """#!{python}
import os, signal, sys, tty
if "--version" in sys.argv:
    sys.exit(print("QEMU emulator version 9.1"))
if os.isatty(0):
    tty.setraw(0)
    os.set_blocking(0, False)
os.write(1, b"\\x1bc\\x1b[?7l\\x1b[2J" + b"SeaBIOS\\r\\n" * 9999)
{end}
"""


@pytest.fixture
def qemu(tmp_path):
    """Makes an emulator that ends in this way; returns the arguments of launch.py that use it."""

    def make(end):
        path = tmp_path / "qemu"
        path.write_text(QEMU.format(python=sys.executable, end=end), encoding="utf-8")
        path.chmod(0o755)
        return ["--build", str(tmp_path), "--firmware", "pvh", "--cpus", "1", "--mem", "64M", "--qemu", str(path)]

    return make


def on_terminal(argv, says=b"", then=lambda child, terminal: None):
    """Run on a terminal of its own, and once this was printed, do that: (exit status, what was printed). The terminal's modes must be as
    before."""
    terminal, ours = pty.openpty()
    before = termios.tcgetattr(ours), fcntl.fcntl(ours, fcntl.F_GETFL)
    child = subprocess.Popen(argv, stdin=ours, stdout=ours, stderr=ours, cwd=ROOT / "tests/qemu", start_new_session=True)
    printed, late = b"", patience.now() + SECONDS
    try:
        while select.select([terminal], [], [], 0.05)[0] or child.poll() is None:
            if select.select([terminal], [], [], 0.05)[0]:
                printed += os.read(terminal, 65536)
            assert patience.now() < late, printed[-2000:]
            if says and says in printed:
                says = then(child, terminal)
        assert (termios.tcgetattr(ours), fcntl.fcntl(ours, fcntl.F_GETFL)) == before
    finally:
        child.kill()
        child.wait()
        os.close(terminal)
        os.close(ours)
    return child.returncode, printed


@pytest.mark.parametrize("end, args, sent, status", [
    (f"print({PASS!r}, flush=True); sys.exit(33)", (), None, 0),
    ("os.kill(os.getpid(), signal.SIGKILL)", (), None, 1),
    ("sys.exit(1)", (), None, 1),
    ("signal.pause()", (), signal.SIGINT, 1),
    ("signal.pause()", (), signal.SIGTERM, 1),
    ("signal.pause()", (), signal.SIGHUP, 1),
    ("signal.pause()", ("--timeout", "1"), None, 1),
], ids=["pass", "killed", "failed", "interrupted", "terminated", "hung up", "late"])  # fmt: skip
def test_the_terminal_is_put_back(qemu, end, args, sent, status):
    then = lambda child, terminal: child.send_signal(sent)  # noqa: E731
    ended, printed = on_terminal(LAUNCH + qemu(end) + list(args), b"SeaBIOS" if sent else b"", then)
    assert ended == status and b"SeaBIOS" in printed and NO_WRAP not in printed, printed[-2000:]
    assert sent or args or printed.count(b"SeaBIOS") == 9999  # although the terminal that QEMU made non-blocking was full


def test_the_terminal_wraps_lines_when_the_kernel_prints(kernel, tmp_path):
    """SeaBIOS and GRUB switch that off. The monitor gets what is typed."""
    (tmp_path / "ashlar.elf").symlink_to(kernel)
    argv = [*LAUNCH, "--build", str(tmp_path), "--cpus", "1", "--mem", "128M", "--accel", "tcg", "--cmdline", "monitor"]
    typed = b"test kernel.string.*\rpoweroff\r"
    status, printed = on_terminal(argv, b"ashlar> ", lambda child, terminal: os.write(terminal, typed) and b"")
    assert status == 0 and b"GRUB" in MOVE.sub(b"", printed) and b"ok 1 kernel.string" in printed and NO_WRAP not in printed, printed[-2000:]


def test_what_is_left_out_may_come_in_pieces(monkeypatch, capfdbinary):
    pieces = iter([*(bytes([byte]) for byte in b"a\x1b[?7lb\x1b[0mc\n\x1b["), b""])
    lines, child = [], SimpleNamespace(stdout=SimpleNamespace(fileno=lambda: -1))
    with monkeypatch.context() as patch:
        patch.setattr(launch.os, "read", lambda fd, most: next(pieces))
        launch.pump(child, lines, launch.Screen())
    assert capfdbinary.readouterr().out == b"ab\x1b[0mc\n\x1b[" and lines[0] == "abc"


def test_records_are_kept_and_not_shown_on_a_terminal(qemu, tmp_path):
    """Elsewhere, as in a file or a pipe, they are shown, too, with the ends of lines that the kernel printed. What is kept can be parsed."""
    said = "BENCH boot ns=1\r\nBENCHES\r\nBENCH own ns=2\r\n"
    pieces = f"for byte in {said.encode()!r}: os.write(1, bytes([byte]))\n"
    argv = [*LAUNCH, *qemu(f"{pieces}print({PASS!r}, flush=True); sys.exit(33)"), "--console", str(tmp_path / "console")]
    status, printed = on_terminal(argv)
    assert status == 0 and b"BENCHES" in printed and b"BENCH " not in printed.replace(b"(lines BENCH ...)", b""), printed[-2000:]
    assert re.search(rb"\n2 records .*: \S*/console\r\n", printed), printed[-2000:]
    piped = subprocess.run(argv, capture_output=True, timeout=SECONDS, check=True).stdout
    assert said.replace("\r\n", "\n").encode() in piped and b"records" not in piped
    kept = records.parse((tmp_path / "console").read_bytes())
    assert [record.kind for record in kept.records] == ["own"] and kept.where == "tcg" and kept.verdict == "pass"


@pytest.mark.parametrize("says", ["KVM internal error. Suberror: 1", "error: kvm run failed Bad address", "failed to initialize kvm: Permission denied"])
def test_what_kvm_cannot_run_is_emulated_or_ends(qemu, says):
    """QEMU pauses such a guest for ever."""
    end = f"if 'kvm' in sys.argv:\n    os.write(2, b'{says}\\n')\n    signal.pause()\nprint({PASS!r}, flush=True); sys.exit(33)"
    status, printed = on_terminal([*LAUNCH, *qemu(end), "--accel", "kvm"])
    assert status == 2 and f"({says}), and ACCEL=tcg emulates the CPUs".encode() in printed, printed[-2000:]
    status, printed = on_terminal([sys.executable, "-c", WITH_KVM, *qemu(end)])
    assert status == 0 and f"({says}), so QEMU emulates the CPUs".encode() in printed and b", tcg" in printed, printed[-2000:]
