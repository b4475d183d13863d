"""The expected skips (expected-skips.txt). A new skip is a failure, and so is an expected skip that no longer happens.

A line is `when machine case reason`, with globs for the machine (those that do not match, after a !) and the reason; two spaces or more
separate the fields. A case is named in full, so that no new skip meets an old pin; a line that begins with a space has more cases for the
line before. `always` means that the skip happens on each such machine. `maybe` means that it depends on the host (a tool that its
distribution does not have), or on memory that firmware and CPUs leave; one of the machines of make test that have the case must show it.
The case `-` is the machine as a whole.
"""

import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

FILE = Path(__file__).with_name("expected-skips.txt")


@dataclass(frozen=True)
class Pin:
    when: str
    machine: str
    case: str
    reason: str

    def is_of(self, machine):
        return fnmatchcase(machine, self.machine.removeprefix("!")) != self.machine.startswith("!")

    def case_matches(self, globs):
        """Is each case of this pin among those that match one of the globs?"""
        return any(glob and (fnmatchcase(self.case, glob) or fnmatchcase(self.case, glob + ".*")) for glob in globs.split(","))

    def covers(self, machine, case, reason):
        return self.is_of(machine) and case == self.case and fnmatchcase(reason, self.reason)


def load(text=None):
    pins = []
    for line in (FILE.read_text(encoding="utf-8") if text is None else text).splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(" ") and pins:
            pins += [replace(pins[-1], case=case) for case in line.split()]
            continue
        fields = re.split(r" {2,}", line.strip())
        if len(fields) != 4 or fields[0] not in ("always", "maybe"):
            raise ValueError(f"expected-skips.txt: {line}")
        pins.append(Pin(*fields))
    return pins


def expected(pins, machine, case, reason):
    return any(pin.covers(machine, case, reason) for pin in pins)


def vanished(pins, machine, ran, skips):
    """The pins of this machine whose case ran, and that match no skip (case, reason) of its run."""
    mine = [pin for pin in pins if pin.when == "always" and pin.is_of(machine) and pin.case in ran]
    return [pin for pin in mine if not any(pin.covers(machine, case, reason) for case, reason in skips)]


def never_shown(pins, machine, ran):
    """The `maybe` pins of this machine that no machine showed that ran their case: ran[machine] is {case: reason of its skip, or None}.

    What a machine would show that has not run (None) is not known.
    """
    for pin in pins:
        told = [cases for name, cases in ran.items() if pin.is_of(name)]
        if pin.when == "maybe" and pin.case != "-" and pin.is_of(machine) and None not in told:
            reasons = [cases[pin.case] for cases in told if pin.case in cases]
            if reasons and not any(reason and fnmatchcase(reason, pin.reason) for reason in reasons):
                yield pin
