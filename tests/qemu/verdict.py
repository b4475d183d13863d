"""Judges how a run ended: the kernel's end marker and QEMU's exit status must agree.

A second begin marker means a reboot. Any exit status except the four of isa-debug-exit means that QEMU died.
"""

import re
from dataclasses import dataclass, field

from machine import Machine

VERDICTS = {33: "pass", 35: "fail", 37: "skipped", 39: "crash"}
CODES = {"pass": 0x10, "fail": 0x11, "skipped": 0x12, "crash": 0x13}
BEGIN = re.compile(r"ASHLAR-BEGIN$")  # SeaBIOS leaves its own line unfinished before it
END = re.compile(r"^ASHLAR-END verdict=(\S+) code=(\S+)(?: status=(\d+))?$")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1bc|[\r\x00]")
FAILED = re.compile(r"\s*(not ok |# \S+: tests/)")
TAIL_LINES = 40


@dataclass
class Outcome:
    """How a guest ended. `problem` is empty if begin, end and exit status agree; `verdict` is the kernel's word."""

    machine: Machine
    verdict: str = ""
    problem: str = ""
    status: int = -1
    lines: list = field(default_factory=list)
    seconds: float = 0

    @property
    def text(self):
        return "\n".join(self.lines)

    def ended(self, verdict="pass"):
        assert (self.verdict, self.problem) == (verdict, ""), self.report()
        return self

    def says(self, *patterns):
        for pattern in patterns:
            assert re.search(pattern, self.text, re.M), f"nothing says /{pattern}/\n{self.report()}"
        return self

    def report(self):
        """What went wrong, the cases that failed, and the end of the console."""
        failed = "".join(f"    | {line}\n" for line in self.lines[:-TAIL_LINES] if FAILED.match(line))
        tail = "\n".join("    | " + line for line in self.lines[-TAIL_LINES:])
        what = self.problem or f"verdict {self.verdict}"
        return f"{self.machine.name}: {what} (after {self.seconds:.1f} s)\n{failed}end of its console:\n{tail}"


def clean(line):
    return ESCAPES.sub("", line).rstrip("\n")


def program_status(lines):
    """The exit status of the program that the run was for, as the end marker says it; None if it says none."""
    said = [match[3] for match in map(END.match, lines) if match and match[3]]
    return int(said[-1]) if said else None


def judge(lines, status):
    """(verdict, problem) from the console and QEMU's exit status."""
    begins = sum(1 for line in lines if BEGIN.search(line))
    ends = [match for match in map(END.match, lines) if match]
    said = ends[-1][1] if ends else ""
    if begins == 0:
        return said, f"the kernel never began (QEMU's status {status})"
    if begins > 1:
        return said, f"it rebooted: {begins} begin markers"
    if not ends:
        return said, f"it died: no end marker, QEMU's status {status}"
    if len(ends) > 1:
        return said, f"{len(ends)} end markers"
    if said not in CODES or int(ends[0][2], 16) != CODES[said]:
        return said, f"impossible end marker: {ends[0][0]}"
    if VERDICTS.get(status) != said:
        return said, f"the end marker says {said}, QEMU's status {status} does not"
    return said, ""
