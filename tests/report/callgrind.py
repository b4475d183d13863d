"""Counts from valgrind's callgrind, of some functions and without those of others: pure functions over text.

A profile has, for each function, the counts of its own instructions and those of each function that it calls. Names are written once with a
number, and only the number after that. Format: "Callgrind Format Specification", in the manual of valgrind.
"""

import re
from dataclasses import dataclass, field

SPEC = re.compile(r"(fl|fi|fe|fn|ob|cfi|cfl|cfn|cob)=(.*)")
NAME = re.compile(r"\((\d+)\)(?: (.+))?")
COSTS = re.compile(r"(?:0x[0-9a-f]+|[+-]?\d+|\*)((?: \d+)*)")


class Torn(Exception):
    """The text is no whole profile."""


@dataclass
class Profile:
    events: tuple = ()
    own: dict = field(default_factory=dict)  # {function: counts}
    calls: dict = field(default_factory=dict)  # {(caller, callee): counts, all that the callee called included}


def add(table, key, counts):
    table[key] = [a + b for a, b in zip(table.get(key, [0] * len(counts)), counts)]


def parse(text):
    """A Profile from the text of one dump."""
    events = re.search(r"^events: (.+)$", text, re.M)
    if not events or not re.search(r"^(?:summary|totals): ", text, re.M):
        raise Torn("callgrind wrote no whole profile")
    profile = Profile(tuple(events[1].split()))
    names, function, callee, times = {}, None, None, None
    for line in text[events.end():].splitlines():
        if spec := SPEC.fullmatch(line):
            if spec[1] in ("fn", "cfn"):
                number = NAME.fullmatch(spec[2])
                name = number[2] or names[number[1]] if number else spec[2]
                if number:
                    names[number[1]] = name
                function, callee = (name, callee) if spec[1] == "fn" else (function, name)
        elif line.startswith("calls="):
            times = int(line[6:].split()[0])
        elif (costs := COSTS.fullmatch(line)) and function:
            counts = [int(word) for word in costs[1].split()]
            counts += [0] * (len(profile.events) - len(counts))
            if times is None:
                add(profile.own, function, counts)
            elif times > 0:  # a call that began before the dump is one of its callers, and stands with 0
                add(profile.calls, (function, callee), counts)
            times = None
    return profile


def counts_of(profile, kept, left_out):
    """
    {event: count} of the functions in `kept`, and of those that they call which are in neither set, such as memset(), with all that these
    call. Functions of `left_out` do not count, whatever they call.
    """
    total = [0] * len(profile.events)
    wanted = [counts for function, counts in profile.own.items() if function in kept]
    wanted += [counts for (caller, callee), counts in profile.calls.items() if caller in kept and callee not in kept | left_out]
    for counts in wanted:
        total = [a + b for a, b in zip(total, counts)]
    return dict(zip(profile.events, total))
