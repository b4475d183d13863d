"""Runs a machine, watches its console, and judges how it ended.

A guest that prints nothing for its deadline hangs. The guest is ended, and its console so far is kept. A guest that goes on printing may be
slow because its host is slow, so it counts as hung only after several times its deadline. verdict.py judges everything else about the end
of a run.
"""

import json
import os
import re
import signal
import socket
import tempfile
import time

import patience
import pexpect

from machine import FROM_IMAGE, command, make_image
from verdict import Outcome, clean, judge


PROMPT = "ashlar> "
SECONDS = 80  # of silence, after which a guest of a test hangs; less than a mutant may take (tests/mutants/mutants.py)
SLOW_NOT_HUNG = 4  # a guest that is never silent for its deadline may take this many times as long


def process_kib(pid, field):
    """What /proc says of a process's memory now (VmRSS) or at the most (VmHWM)."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
        return int(re.search(rf"^{field}:\s*(\d+) kB$", status.read(), re.M)[1])


class Guest:
    """One running machine. Use it as a context manager: the machine never outlives the block."""

    asked = False  # whether QEMU itself can be asked something: ask(). Ctrl-C on the console then ends QEMU

    def __init__(self, machine, kernel, on_line=None):
        self.machine, self.kernel, self.on_line = machine, kernel, on_line
        self.lines, self.child, self.started = [], None, 0.0
        self.scratch = tempfile.TemporaryDirectory(prefix="ashlar-")

    def __enter__(self):
        iso = self.machine.image or None
        if self.machine.firmware in FROM_IMAGE and not iso:
            iso = make_image(self.machine, self.kernel, os.path.join(self.scratch.name, "image"))
        argv = command(self.machine, self.kernel, iso) + (["-qmp", f"unix:{self.scratch.name}/qmp,server=on,wait=off"] if self.asked else [])
        self.started = time.monotonic()
        self.child = pexpect.spawn(
            argv[0], argv[1:], encoding="utf-8", codec_errors="replace", echo=False, dimensions=(50, 400), maxread=65536
        )
        self.child.delaybeforesend = None
        self.qmp = None
        return self

    def __exit__(self, *exc):
        self._end()
        if self.qmp:
            self.qmp.close()
        self.scratch.cleanup()

    def _end(self):
        """End the guest, however long a busy host takes to end it: close() alone gives up after a tenth of a second."""
        if self.child.isalive():
            self.child.kill(signal.SIGKILL)
            self.child.wait()
        self.child.close()

    def _take(self, line):
        line = clean(line)
        self.lines.append(line)
        if self.on_line:
            self.on_line(line)

    def wait_text(self, patterns, deadline):
        """The number of the pattern that comes first. Raises pexpect.TIMEOUT at the deadline (patience.now())."""
        while True:
            left = max(0.05, deadline - patience.now())
            found = self.child.expect([*patterns, pexpect.TIMEOUT], timeout=min(left, patience.STEP))
            if found < len(patterns):
                return found
            if patience.now() > deadline:
                raise pexpect.TIMEOUT("")

    def read_line(self, deadline):
        """The next line, or None at the end of the console. Raises pexpect.TIMEOUT at the deadline."""
        if self.wait_text(["\n", pexpect.EOF], deadline) == 1:
            if self.child.before:
                self._take(self.child.before)
            return None
        self._take(self.child.before)
        return self.lines[-1]

    def wait_for(self, pattern, seconds):
        """True when a line matches; False if the console ends or the time is over first."""
        deadline = patience.now() + seconds
        try:
            while (line := self.read_line(deadline)) is not None:
                if re.search(pattern, line):
                    return True
        except pexpect.TIMEOUT:
            self._take(self.child.buffer)
        return False

    def send(self, text):
        self.child.send(text)

    def _connect(self):
        deadline = time.monotonic() + 200
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(f"{self.scratch.name}/qmp")
                break
            except OSError:
                connection.close()
                assert time.monotonic() < deadline, "QEMU does not open its QMP socket"
                time.sleep(0.05)
        connection.settimeout(200)
        self.qmp = connection.makefile("rw")
        connection.close()
        self.qmp.readline()
        self.ask("qmp_capabilities")

    def ask(self, command_name, **arguments):
        if self.qmp is None:
            self._connect()
        self.qmp.write(json.dumps({"execute": command_name, "arguments": arguments}) + "\n")
        self.qmp.flush()
        while True:
            answer = json.loads(self.qmp.readline() or '{"error": "QEMU has ended"}')
            if "error" in answer:
                raise RuntimeError(f"{command_name}: {answer['error']}")
            if "return" in answer:
                return answer["return"]

    def monitor(self, line):
        return self.ask("human-monitor-command", **{"command-line": line})

    def finish(self, seconds):
        """Run to the end. The guest hangs if it prints nothing for `seconds`, or if it takes SLOW_NOT_HUNG times `seconds` in all."""
        end, problem = patience.now() + SLOW_NOT_HUNG * seconds, ""
        try:
            while self.read_line(min(end, patience.now() + seconds)) is not None:
                pass
            self.child.wait()
        except pexpect.TIMEOUT:
            self._take(self.child.buffer)
            silent = patience.now() < end
            problem = f"it hung: silent for {seconds:.0f} s" if silent else f"it hung: not finished after {SLOW_NOT_HUNG * seconds:.0f} s"
        self._end()
        status = self.child.exitstatus if self.child.exitstatus is not None else -(self.child.signalstatus or 0)
        verdict, wrong = judge(self.lines, status)
        spent = time.monotonic() - self.started
        return Outcome(self.machine, verdict, problem or wrong, status, self.lines, spent)


class Session(Guest):
    """A guest that waits at the monitor's prompt, into which one types like a person at its serial line."""

    def __enter__(self):
        super().__enter__()
        self.text = ""
        self.prompt(120)
        return self

    def __exit__(self, kind, *exc):
        """A session that was not ended otherwise ends in order, and must pass."""
        try:
            if kind is None and self.child.isalive():
                self.poweroff().ended()
        finally:
            super().__exit__(kind, *exc)

    def prompt(self, seconds=60):
        self.wait_text([re.escape(PROMPT)], patience.now() + seconds)
        before = self.child.before.replace("\r", "")
        self.text += before + PROMPT
        return before

    def command(self, line, seconds=60):
        """Type a line; returns the text that it printed, without the echo."""
        self.send(line + "\r")
        return self.prompt(seconds).partition("\n")[2]

    def expect(self, pattern, seconds=60):
        self.wait_text([pattern], patience.now() + seconds)
        self.text += self.child.before.replace("\r", "") + self.child.after
        return self.child.match

    def poweroff(self):
        """End the run; returns its outcome."""
        self.send("poweroff\r")
        self.lines = self.text.split("\n")
        return self.finish(600)


def run(machine, kernel, seconds=SECONDS, on_line=None):
    with Guest(machine, kernel, on_line) as guest:
        return guest.finish(seconds)
