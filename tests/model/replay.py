#!/usr/bin/env python3
"""Replays the trace of a hosted run (ashlar-host -e file) against the rules of the models.

    replay.py trace ...

The program takes the same steps as shootdown.pml and block.pml (the other models have no events), from the events that the CPUs recorded
(arch/check_event.h), and names the first step that the rules do not allow. It believes that a ranged round flushes what its CPU changed
since its last tag or round. Exit status: 0 if every trace obeys the rules, 1 if one does not, 2 if one cannot be read.

The order of events proves the following. An event is placed at the moment of the call, so the order agrees with each CPU's own order. If
CPU B saw the effect of a step of CPU A, and the event of this step stands before the step, then A's event is before B's next one.
`publish`, `done`, `idle` and `give` stand before their step; `round`, `ranged`, `tag`, `awake` and `pte` stand after it. These rules follow:

  round    each generation is given once, and none is left out (checked at the end, because others may be recorded late)
  need     the next tag or round of a CPU after a PTE change gives the generation that this change needs; a change of a table
           needs it from a round of all CPUs. Another change of the same entry to the same frame takes the place of the first: rights were
           granted, which needs no round
  ranged   only the initiator of a ranged round says it: the changes that needed its generation are flushed
  done     only the initiator of a full round says it; every CPU that had joined before the round began has published at
           least that generation, or, if idle CPUs may be skipped, was idle at some time since
  awake    an idle CPU does nothing before it; after it, the CPU first publishes the last round
           that was recorded before
  give     with a tag: the tag is not less than any change of that frame needs; with none: the needed rounds are done
  reused   for a frame: the rounds that its changes need are done
  settled  for a block: the rounds that the changes of its struct pages' addresses need are done
  state    the change is in the table of block_state.c, and begins where the last one ended
"""

import argparse
import struct
import sys
from collections import Counter

MAGIC = 0x3165636172746C61
HEADER, EVENT = struct.Struct("<QQQ"), struct.Struct("<IIQQ")
NAMES = ("round_skipping round_all round_ranged done publish tag idle awake give state settled reused pte table quiet ranged".split())
STATES = "unopened absent reserved bare huge nohead full meta".split()
LEGAL = {
    "unopened": {"absent", "reserved", "bare", "full", "meta"},
    "bare": {"huge", "nohead", "full", "meta", "unopened"},
    "huge": {"bare", "full"},
    "nohead": {"bare", "huge", "full"},
    "full": {"huge", "nohead", "meta", "unopened"},
    "meta": {"bare", "full", "unopened"},
}
PAGE, BLOCK_BYTES = 4096, 512 * 64


class Broken(Exception):
    """A broken rule, in words."""


class Unreadable(Exception):
    """The file is not a whole trace."""


def load(path):
    """[(cpu, name, a, b)]"""
    with open(path, "rb") as file:
        header = file.read(HEADER.size)
        if len(header) < HEADER.size:
            raise Unreadable("too short")
        magic, used, room = HEADER.unpack(header)
        if magic != MAGIC:
            raise Unreadable("not a trace")
        if used > room:
            raise Unreadable(f"{used} events, room for {room}")
        data = file.read(used * EVENT.size)  # the rest of the file is a hole
    if len(data) < used * EVENT.size:
        raise Unreadable("cut short")
    events = []
    for cpu, event, a, b in EVENT.iter_unpack(data):
        if event > len(NAMES):
            raise Unreadable(f"event {event} is not known")
        if event:  # 0: the machine ended after taking this place and before filling it
            events.append((cpu, NAMES[event - 1], a, b))
    return events


class Change:
    """A translation that was taken away, with the round that must be done before the frame, or the address, is used again."""

    def __init__(self, cpu, virt, frame, table):
        self.cpu, self.virt, self.frame, self.table = cpu, virt, frame, table
        self.need, self.by_range = None, False  # by_range: the need is that of a ranged round of its own CPU
        self.later = None  # a change of the same entry, which led to the same frame still, because only rights changed

    def __str__(self):
        need = "no round or tag followed" if self.need is None else f"needs generation {self.need}"
        what = "table" if self.table else "entry"
        return f"the {what} of 0x{self.virt:x} that led to frame 0x{self.frame:x}, changed by CPU {self.cpu}: {need}"


class Cpu:
    def __init__(self):
        self.published, self.joined = 0, False
        self.quiet = False
        self.idle, self.last_awake = False, -1  # place of the event that ended the last idle time
        self.owes = 0  # must have published this before it does anything else
        self.loose = []  # changes that wait for this CPU's next tag or round


class Monitor:
    def __init__(self):
        self.cpus, self.rounds = {}, {}  # rounds: g -> (cpu, kind, place, joined CPUs)
        self.done = self.done_all = 0
        self.ranged = set()  # generations of ranged rounds that are complete
        self.by_frame, self.by_page = {}, {}
        self.state = {}
        self.count = Counter()

    def step(self, place, event):
        cpu_id, name, a, b = event
        cpu = self.cpus.setdefault(cpu_id, Cpu())
        self.count[name] += 1
        if name != "awake" and (cpu.idle or cpu.quiet):
            raise Broken(f"CPU {cpu_id} goes on as if it were not idle")
        if name != "publish" and cpu.published < cpu.owes:
            raise Broken(f"CPU {cpu_id} woke and goes on although it has not flushed for generation {cpu.owes}")
        getattr(self, "on_" + name.split("_")[0])(place, cpu_id, cpu, name, a, b)

    # ---- rounds ----

    def need(self, cpu, generation):
        for change in cpu.loose:
            change.need = generation
        cpu.loose = []

    def on_round(self, place, cpu_id, cpu, name, g, _):
        if g in self.rounds:
            raise Broken(f"generation {g} is given twice")
        joined = [i for i, c in self.cpus.items() if c.joined]
        self.rounds[g] = (cpu_id, name, place, joined)
        for change in cpu.loose:
            change.by_range = name == "round_ranged" and not change.table
        self.need(cpu, g)

    def on_tag(self, _place, _cpu_id, cpu, _name, tag, _):
        self.need(cpu, tag)

    def on_publish(self, _place, _cpu_id, cpu, _name, g, _):
        cpu.published = max(cpu.published, g)  # a flush that another flush interrupted publishes less, because publishing only raises the value
        cpu.joined = True

    def on_done(self, _place, cpu_id, cpu, _name, g, _):
        initiator, kind, begun, joined = self.rounds.get(g, (None, "", 0, ()))
        if initiator != cpu_id:
            raise Broken(f"CPU {cpu_id} completes generation {g}, which it has not begun")
        if kind == "round_ranged":
            raise Broken(f"generation {g} is completed although its round was ranged")
        if cpu.published < g:
            raise Broken(f"CPU {cpu_id} completes generation {g} and has not flushed itself")
        for i in joined:
            other = self.cpus[i]
            rested = kind == "round_skipping" and (other.idle or other.quiet or other.last_awake > begun)
            if other.published < g and not rested:
                raise Broken(f"generation {g} is completed although CPU {i} has published {other.published} only")
        self.done = max(self.done, g)
        if kind == "round_all":
            self.done_all = max(self.done_all, g)

    def on_ranged(self, _place, cpu_id, _cpu, _name, g, _):
        initiator, kind, _, _ = self.rounds.get(g, (None, "", 0, ()))
        if initiator != cpu_id or kind != "round_ranged":
            raise Broken(f"CPU {cpu_id} completes generation {g}, which is no ranged round of its own")
        self.ranged.add(g)

    # ---- idle ----

    def on_idle(self, _place, _cpu_id, cpu, _name, _a, _b):
        cpu.idle = True

    def on_awake(self, place, _cpu_id, cpu, _name, _a, _b):
        cpu.idle, cpu.quiet, cpu.last_awake = False, False, place
        cpu.owes = max(self.rounds, default=0)

    def on_quiet(self, _place, _cpu_id, cpu, _name, _a, _b):
        cpu.quiet = True

    def reusable(self):
        """Frames wait for quiet CPUs, too, while other code goes on at `done`."""
        return min([self.done, *(cpu.published for cpu in self.cpus.values() if cpu.quiet)])

    # ---- translations and frames ----

    def on_pte(self, _place, cpu_id, cpu, name, virt, frame):
        change = Change(cpu_id, virt, frame, name == "table")
        for before in self.by_frame.get(frame, ()):
            if before.virt == virt and before.table == change.table:
                before.later = change
        cpu.loose.append(change)
        self.by_frame.setdefault(frame, []).append(change)
        self.by_page.setdefault(virt // PAGE, []).append(change)

    on_table = on_pte

    def passed(self, change, done):
        while change.later:
            change = change.later
        if change.need is None:
            return False
        return change.by_range and change.need in self.ranged or (self.done_all if change.table else done) >= change.need

    def require(self, table, keys, words, done):
        """The rounds that the changes under these keys need must be done; then the changes may be forgotten."""
        for key in keys:
            for change in table.get(key, ()):
                if not self.passed(change, done):
                    raise Broken(f"{words}: {change}, done is {done} ({self.done_all} of all CPUs)")
            table.pop(key, None)

    def on_give(self, _place, cpu_id, _cpu, _name, frame, tag):
        if tag == 0:
            self.require(self.by_frame, [frame], f"CPU {cpu_id} frees frame 0x{frame:x} at once", self.reusable())
            return
        for change in self.by_frame.get(frame, ()):
            if change.need is None or tag < change.need:
                raise Broken(f"CPU {cpu_id} gates frame 0x{frame:x} under tag {tag}: {change}")

    def on_reused(self, _place, cpu_id, _cpu, _name, frame, count):
        inside = range(frame, frame + count)
        keys = [f for f in inside if f in self.by_frame] if count <= len(self.by_frame) else [f for f in self.by_frame if f in inside]
        self.require(self.by_frame, keys, f"CPU {cpu_id} reuses frames from 0x{frame:x}", self.reusable())

    # ---- blocks ----

    def on_settled(self, _place, cpu_id, _cpu, _name, virt, blocks):
        first, last = virt // PAGE, (virt + blocks * BLOCK_BYTES) // PAGE
        keys = [page for page in range(first, last) if page in self.by_page]
        self.require(self.by_page, keys, f"CPU {cpu_id} publishes the block with struct pages at 0x{virt:x}", self.done)

    def on_state(self, _place, cpu_id, _cpu, _name, virt, change):
        before, after = STATES[change // 16], STATES[change % 16]
        known = self.state.get(virt, before)
        if after not in LEGAL.get(before, ()):
            raise Broken(f"CPU {cpu_id} takes the block at 0x{virt:x} from {before} to {after}")
        if known != before:
            raise Broken(f"the block at 0x{virt:x} leaves {before} but was {known}")
        self.state[virt] = after

    def end(self):
        missing = [g for g in range(min(self.rounds, default=1), max(self.rounds, default=0)) if g not in self.rounds]
        if missing:
            raise Broken(f"generation {missing[0]} was never begun")
        highest = max(self.rounds, default=0)
        for i, cpu in self.cpus.items():
            if cpu.published > highest:
                raise Broken(f"CPU {i} has published {cpu.published}, but there were {highest} generations")


def words(event):
    cpu, name, a, b = event
    return f"CPU {cpu:<3} {name:<15} 0x{a:x} 0x{b:x}"


def replay(path):
    """"" if the trace obeys the rules, else the broken rule with the events before it."""
    events, monitor = load(path), Monitor()
    for place, event in enumerate(events):
        try:
            monitor.step(place, event)
        except Broken as rule:
            tail = "\n".join(f"    {i:7} {words(events[i])}" for i in range(max(0, place - 12), place + 1))
            return f"event {place}: {rule}\n{tail}", monitor
    try:
        monitor.end()
    except Broken as rule:
        return f"at the end: {rule}", monitor
    return "", monitor


def main():
    parser = argparse.ArgumentParser(description="Replay traces against the rules of the models.")
    parser.add_argument("traces", nargs="+")
    args = parser.parse_args()
    status = 0
    for path in args.traces:
        try:
            wrong, monitor = replay(path)
        except (Unreadable, OSError) as reason:
            print(f"{path}: cannot be read: {reason}")
            return 2
        counts = " ".join(f"{name}={monitor.count[name]}" for name in NAMES if monitor.count[name])
        print(f"{path}: {'BROKEN, ' + wrong if wrong else 'obeys'}\n    {counts}", flush=True)
        status |= bool(wrong)
    return status


if __name__ == "__main__":
    sys.exit(main())
