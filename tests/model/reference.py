#!/usr/bin/env python3
"""A reference of the page allocator, the pool and huge mappings that shares no code with mm/. It reads what mm.calls.* prints
(tests/kernel/calls_test.c) and names the first line that cannot be true.

    build/host/asan/ashlar-host -x -c 2 -m 256M -k 'test=mm.calls.* test.calls=g4,a3.1,t,f1' >trace
    tests/model/reference.py -m 256M trace

It is written from the comments of mm.h and pools.h, and where these are silent from Linux's pages about hugetlb. It does not foretell which
frame a call gets, but judges the answer: the frame is RAM of the node that was asked for, belongs to nobody, and lies in a block of its
type. A page leaves a mapping with a round of flushes. All counts after a call follow from those before it. Exit status: 0 if each line of
each trace can be true, 1 if one cannot, 2 if there is none.
"""

import argparse
import re
import sys
from dataclasses import dataclass, field

BLOCK = 512  # frames of a large page
ZERO, NOFLUSH, NODE, DMA32 = 1, 2, 4, 8
POOL, RESERVE, POPULATE = 1, 2, 8
MOVABLE = 1  # unmovable and reclaimable pages may share blocks
NO_MEMORY, INVALID = 12, 22
USES, ORDERS, NUMBERS, MAPPED_MOST, MAPS_MOST = 3, 10, 4, 4, 16
OWNERS = "free unopened per_cpu pool_free in_use meta gated transit bad reserved".split()
COUNTS = "pages there taken promised surplus overcommit".split()
TABLES_MOST = 16  # frames of page tables and descriptors that mappings may keep, and again for each mapping


class Untrue(Exception):
    """What cannot be true, in words."""


def require(condition, words):
    if not condition:
        raise Untrue(words)


@dataclass
class Call:
    number: int
    letter: str
    args: list
    said: dict
    void: bool

    def __getattr__(self, name):
        """What the call said: call.pfn."""
        require(name in self.said, f"the answer has no {name}")
        return self.said[name]


@dataclass
class Held:
    """A page that a call has made and nobody has freed."""

    first: int
    frames: int
    pooled: bool


@dataclass
class Mapping:
    at: int
    unit: int  # frames of a page
    pages: int  # of 4 KiB, in all
    flags: int
    promises: int = 0  # pages that the pool keeps for it
    there: dict = field(default_factory=dict)  # page: is it the pool's
    first: dict = field(default_factory=dict)  # page: its first frame, once it was seen
    mark: dict = field(default_factory=dict)  # 4 KiB: the call that wrote there
    read_only: set = field(default_factory=set)  # 4 KiB
    cut: set = field(default_factory=set)  # pages that may be mapped in pieces

    def forget(self, unit):
        """What was written to the page."""
        for page in range(unit * self.unit, (unit + 1) * self.unit):
            self.mark.pop(page, None)

    def units(self, page, count):
        return range(page // self.unit, (page + count - 1) // self.unit + 1)


class Pool:
    """The counts of a pool on a machine of one node, as Linux has them. A call adds what it does."""

    def __init__(self, state):
        for name in COUNTS:
            setattr(self, name, state[name])

    @property
    def persistent(self):
        return self.pages - self.surplus

    @property
    def unpromised(self):
        return self.there - self.promised

    def grow(self, count, surplus=0):
        self.pages += count
        self.there += count
        self.surplus += surplus

    def leave(self, count):
        """Free pages leave; of them those first that are surplus and not balanced by a page in use."""
        self.surplus -= min(count, self.surplus - min(self.surplus, self.taken))
        self.pages -= count
        self.there -= count

    def shed(self, most):
        """Free surplus goes, as far as nobody has a promise."""
        count = min(most, self.surplus, self.unpromised)
        self.pages -= count
        self.there -= count
        self.surplus -= count

    def learn(self, state, letter):
        """Whether a page is surplus is not foretold with several nodes, where its node decides, nor after a failure. All else is."""
        if letter != "s":
            persistent = state["pages"] - state["surplus"]
            require(persistent == self.persistent, f"{persistent} pages of the pool are persistent, not {self.persistent}")
        for name in ("pages", "there", "surplus"):
            setattr(self, name, state[name])

    def adopt(self, target):
        self.surplus -= min(self.surplus, max(target - self.persistent, 0))

    def resize(self, target):
        self.adopt(target)
        self.grow(max(target - self.persistent, 0))
        while (count := min(self.persistent - target, self.unpromised)) > 0:
            self.leave(count)
            self.adopt(target)
        self.shed(max(self.surplus - self.taken, 0))
        self.surplus += max(self.persistent - target, 0)

    def reserve(self, count):
        missing = max(count - self.unpromised, 0)
        if missing > 0 and self.surplus + missing > self.overcommit:
            return False
        self.grow(missing, missing)
        self.promised += count
        return True

    def unreserve(self, count):
        self.promised -= count
        self.shed(count)

    def take(self, promised=False):
        """Is there a page? A surplus page is made for it, if allowed."""
        if not promised and self.unpromised <= 0:
            if self.surplus >= self.overcommit:
                return False
            self.grow(1, 1)
        self.there -= 1
        self.taken += 1
        self.promised -= promised
        return True

    def give(self):
        self.taken -= 1
        self.there += 1
        if self.surplus > 0 and self.there - 1 >= self.promised:
            self.there -= 1
            self.pages -= 1
            self.surplus -= 1


class Reference:
    def __init__(self, nodes, state):
        """`nodes`: the first frame and the end of the RAM of each, from the machine's command line."""
        self.nodes, self.state, self.pool = nodes, state, Pool(state)
        self.owner = {}  # frame: the call that has it
        self.held, self.maps = {}, {}  # by the number of the call that made it
        self.promised = 0  # pages promised to calls, as opposed to mappings
        self.baseline = False  # a mode was named; its pages may be neither made nor restored for lack of frames
        self.first = state
        self.tables = 0  # frames in use for mappings, beside their pages
        self.balanced(state)

    # ---- frames ----

    def node_of(self, frame):
        return next((n for n, (first, end) in enumerate(self.nodes) if first <= frame < end), None)

    def plenty(self, frames=0):
        """So much is free that nothing has to be refused, taken from another use, or from another node."""
        return sum(self.state[name] for name in ("free", "unopened", "per_cpu")) > self.state["ram"] // 2 + frames

    def short(self, call, refused, always=False):
        """The call was refused, maybe because there was no memory to make a page: there is not plenty, and none is free in the pool."""
        wanted = call.args[0] if call.letter == "v" else 1
        return refused and not self.plenty() and (always or self.pool.unpromised < wanted)

    def own(self, number, first, frames):
        require(first % min(frames, BLOCK) == 0, f"frame {first} is not aligned to {frames} frames")
        for frame in range(first, first + frames):
            require(frame not in self.owner, f"frame {frame} is given to call {number} and belongs to call {self.owner.get(frame)}")
            require(self.node_of(frame) is not None, f"frame {frame} is no RAM")
            self.owner[frame] = number

    def disown(self, first, frames):
        for frame in range(first, first + frames):
            del self.owner[frame]

    def wrong_node(self, number):
        return number > len(self.nodes)

    def made(self, call, frames, node, pooled):
        """A page was given out; `node` is the one that it must be of, + 1, or 0."""
        self.own(call.number, call.pfn, frames)
        self.held[call.number] = Held(call.pfn, frames, pooled)
        require(call.refs == 1, f"a new page has {call.refs} references")
        require(call.node == self.node_of(call.pfn), f"frame {call.pfn} is of node {self.node_of(call.pfn)}, not {call.node}")
        require(node in (0, call.node + 1), f"a page of node {call.node} where one of node {node - 1} was asked for")

    # ---- calls for pages ----

    def on_a(self, call, _state):
        order, use, request, node = call.args
        possible = order < ORDERS and use < USES and not (request & NODE and self.wrong_node(node))
        if "pfn" not in call.said:
            excused = request & NOFLUSH or request & NODE and len(self.nodes) > 1
            require(not possible or excused or not self.plenty(), f"no page of order {order}, but there is plenty")
            return
        require(possible, "a page for a request that is wrong")
        require(call.order == order, f"a page of order {call.order} where {order} was asked for")
        require(call.pfn % (1 << order) == 0, f"frame {call.pfn} is not aligned to order {order}")
        require(not request & DMA32 or call.pfn < 1 << 20, f"frame {call.pfn} is not below 4 GiB")
        require(not request & ZERO or call.zero, "a page that was to be cleared is not zero")
        own = (call.type == MOVABLE) == (use == MOVABLE) or order >= 9 or request & NOFLUSH or not self.plenty()
        require(own, f"a page for use {use} from a block of type {call.type}, with plenty free")
        self.made(call, 1 << order, node if request & NODE else 0, False)

    def on_c(self, call, _state):
        order = call.args[0]
        if "pfn" not in call.said:
            empty = not self.held and not self.maps and self.state["pages"] == 0 and 16 << order <= self.state["ram"]
            require(order >= ORDERS and not empty or not self.plenty(), f"no 2^{order} frames, but there is plenty")
            return
        require(call.order == (order if order < ORDERS else 0), f"a page of order {call.order} where 2^{order} frames were asked for")
        self.made(call, 1 << order, 0, False)

    def on_t(self, call, _state):
        promised, node = call.args[0] > 0, call.args[1]
        there = self.promised > 0 if promised else True
        self.promised -= promised and there
        there = there and not self.short(call, "pfn" not in call.said) and self.pool.take(promised)
        require(there == ("pfn" in call.said), f"the pool {'has' if there else 'has not'} a page, and the answer is {call.said}")
        if there:
            require(call.order == 9, f"a pool's page has order {call.order}")
            self.made(call, BLOCK, 0, True)

    def on_f(self, call, _state):
        held = self.held.pop(call.args[0], None)
        require((held is None) == call.void, "a page that is not there was freed" if held is None else "a page that is there was not freed")
        if held is None:
            return
        require(call.lost == 0, f"{call.lost} marks of call {call.args[0]} were lost while it held the page")
        self.disown(held.first, held.frames)
        if held.pooled:
            self.pool.give()

    # ---- the pool ----

    def on_g(self, call, _state):
        want, node, mode = call.args[:3]
        self.baseline |= mode > 0
        most = 0 if self.wrong_node(node) else want
        require(call.n <= most, f"the pool grew by {call.n}, more than {most}")
        excused = mode > 0 or node > 0 and len(self.nodes) > 1 or not self.plenty(want * BLOCK)
        require(call.n == most or excused, f"the pool grew by {call.n} of {most}, with plenty free")
        self.pool.grow(call.n)

    def on_s(self, call, _state):
        want, node = call.args[:2]
        most = 0 if self.wrong_node(node) else min(want, self.pool.unpromised)
        require(call.n <= most, f"the pool shrank by {call.n}, but {most} pages could go")
        require(call.n == most or self.baseline or len(self.nodes) > 1, f"the pool shrank by {call.n}, and {most} pages could go")
        self.pool.leave(most if len(self.nodes) == 1 else call.n)
        if len(self.nodes) == 1:
            self.pool.grow(most - call.n, most - call.n)  # what could not be restored

    def on_z(self, call, _state):
        target = call.args[0]
        if not self.plenty(target * BLOCK):
            target = min(target, max(call.n, self.pool.persistent))
        self.pool.resize(target)
        require(call.n == self.pool.persistent, f"resized to {call.n} pages, not to {self.pool.persistent}")

    def on_o(self, call, _state):
        self.pool.overcommit = call.args[0]

    def on_v(self, call, state):
        count = call.args[0]
        short = self.short(call, call.n < count)
        if short:
            self.pool.learn(state, call.letter)  # free pages that were surplus may have gone
        done = not short and self.pool.reserve(count)
        require(call.n == (count if done else 0), f"{call.n} pages were promised, where {count} {'could' if done else 'could not'} be")
        self.promised += call.n

    def on_u(self, call, _state):
        count = min(call.args[0], self.promised)
        require(call.n == count, f"{call.n} promises were taken back, not {count}")
        self.promised -= count
        self.pool.unreserve(count)

    # ---- mappings ----

    def bring(self, mapping, page):
        """A page of its size comes to the mapping. False if there is none."""
        if page in mapping.there:
            return True
        if mapping.unit == 1:
            mapping.there[page] = False
            return True
        promised = mapping.promises > 0
        pooled = self.pool.take(promised)
        mapping.promises -= promised
        if pooled or not mapping.flags & POOL:
            mapping.there[page] = pooled
        return page in mapping.there

    def on_m(self, call, state):
        flags, pages, large = call.args[:3]
        unit, count = BLOCK if large else 1, min(max(pages, 1), MAPPED_MOST)
        mapping = Mapping(call.at, unit, count * unit, flags | POOL * bool(flags & RESERVE))
        possible = not (flags & RESERVE and not large) and (call.at != 0 or len(self.maps) < MAPS_MOST)  # addresses run out
        if self.short(call, call.at == 0, True):
            self.pool.learn(state, call.letter)  # what came was given back
            return
        if possible and flags & RESERVE:
            possible = self.pool.reserve(count)
            mapping.promises = count if possible else 0
        if possible and flags & POPULATE:
            possible = all([self.bring(mapping, page) for page in range(count)])
            if not possible:
                for pooled in mapping.there.values():
                    if pooled:
                        self.pool.give()
        require(possible == (call.at != 0), f"a mapping {'can' if possible else 'cannot'} be made, and the answer is {call.at}")
        if not possible:
            return
        require(call.at % (1 << 30) == 0, f"the mapping begins at {call.at:x}, not at a GiB")
        for number, other in self.maps.items():
            apart = call.at >= other.at + (2 << 30) or other.at >= call.at + (2 << 30)
            require(apart, f"the mapping at {call.at:x} is too near to that of call {number}")
        self.maps[call.number] = mapping

    def mapping(self, call):
        mapping = self.maps.get(call.args[0])
        require((mapping is None) == call.void, "a mapping is there, but not found" if mapping else "a mapping that is not there was used")
        return mapping

    def on_w(self, call, state):
        mapping = self.mapping(call)
        if not mapping:
            return
        page = call.args[1] % mapping.pages
        unit, place = divmod(page, mapping.unit)
        short = unit not in mapping.there and self.short(call, call.err == NO_MEMORY, mapping.unit == 1)
        there = not short and self.bring(mapping, unit)
        require(call.err == (0 if there else NO_MEMORY), f"error {call.err} where a page {'can' if there else 'cannot'} be had")
        if not there:
            return
        if unit not in mapping.first:
            self.own(call.number, call.pfn - place, mapping.unit)
            mapping.first[unit] = call.pfn - place
        require(call.pfn == mapping.first[unit] + place, f"page {page} was frame {mapping.first[unit] + place} and is {call.pfn}, though it stayed")
        parts = range(unit * mapping.unit, (unit + 1) * mapping.unit)
        mixed = 0 < sum(part in mapping.read_only for part in parts) < mapping.unit
        leaves = {1} if mixed else {1, mapping.unit} if unit in mapping.cut else {mapping.unit}
        require(call.leaf in leaves, f"page {page} is mapped by leaves of {call.leaf} frames, not {leaves}")
        require(call.writable == (page not in mapping.read_only), f"page {page} is {'' if call.writable else 'not '}writable")
        require(not call.torn, f"the words of page {page} have not one mark")
        require(call.old == mapping.mark.get(page, 0), f"page {page} has the mark {call.old}, not {mapping.mark.get(page, 0)}")
        if call.writable:
            mapping.mark[page] = call.number + 1

    def drop(self, mapping, unit, state):
        """A page leaves its mapping. Returns whether it was the pool's."""
        first = mapping.first.pop(unit, None)
        if first is not None:
            self.disown(first, mapping.unit)
        mapping.forget(unit)
        require(state["g"] > self.state["g"], f"a page left its mapping, and no round of flushes followed round {self.state['g']}")
        return mapping.there.pop(unit)

    def span(self, call, mapping):
        page = call.args[1] % mapping.pages
        return page, min(max(call.args[2], 1), mapping.pages - page)

    def on_r(self, call, state):
        mapping = self.mapping(call)
        if not mapping:
            return
        page, count = self.span(call, mapping)
        whole = page % mapping.unit == 0 and count % mapping.unit == 0
        require(call.err == (0 if whole else INVALID), f"error {call.err} for pages {page} to {page + count}")
        if not whole:
            return
        for unit in mapping.units(page, count):
            if mapping.flags & RESERVE:
                mapping.forget(unit)  # the page stays, cleared, so that nobody else can have it
            elif unit in mapping.there and self.drop(mapping, unit, state):
                self.pool.give()

    def on_p(self, call, state):
        mapping = self.mapping(call)
        if not mapping:
            return
        page, count = self.span(call, mapping)
        require(call.err == 0 or call.err == NO_MEMORY and not self.plenty(), f"error {call.err} although there is memory")
        if call.err:
            return
        parts = set(range(page, page + count))
        lost = {part // mapping.unit for part in parts - mapping.read_only} & set(mapping.there)
        if call.args[3] and lost:
            require(state["g"] > self.state["g"], "pages lost the right to write, and no round of flushes followed")
        mapping.read_only = mapping.read_only | parts if call.args[3] else mapping.read_only - parts
        for unit in mapping.units(page, count):
            whole = set(range(unit * mapping.unit, (unit + 1) * mapping.unit)) <= parts
            (mapping.cut.discard if whole else mapping.cut.add)(unit)

    def on_x(self, call, state):
        mapping = self.mapping(call)
        if not mapping:
            return
        for unit in list(mapping.there):
            if self.drop(mapping, unit, state):
                self.pool.give()
        self.pool.unreserve(mapping.promises)
        del self.maps[call.args[0]]

    # ---- counts ----

    def in_use(self):
        """Frames that calls have, beside those of page tables."""
        held = sum(held.frames for held in self.held.values() if not held.pooled)
        mapped = sum(mapping.unit for mapping in self.maps.values() for pooled in mapping.there.values() if not pooled)
        return held + mapped + self.pool.taken * BLOCK

    def balanced(self, state):
        total = sum(state[name] for name in OWNERS)
        require(total == state["ram"], f"the owners have {total} frames, and there are {state['ram']}")
        require(state["pages"] == state["there"] + state["taken"], f"the pool has {state['pages']} pages, not those free and in use")

    def counts(self, letter, state, before):
        self.balanced(state)
        for name in ("ram", "bad", "reserved", "transit"):
            require(state[name] == self.state[name], f"{name} was {self.state[name]} and is {state[name]}")
        if len(self.nodes) > 1:
            self.pool.learn(state, letter)
        for name in COUNTS:
            require(state[name] == getattr(self.pool, name), f"{name} of the pool is {state[name]}, not {getattr(self.pool, name)}")
        require(state["pool_free"] - self.state["pool_free"] == (state["there"] - self.state["there"]) * BLOCK, "pool_free is not the pool's free pages")
        require(state["done"] <= state["g"], f"round {state['done']} is over, of {state['g']}")
        tables = state["in_use"] - self.state["in_use"] - (self.in_use() - before)
        require(tables == 0 or letter in "mwrpx", f"{state['in_use']} frames are in use, {tables} more than calls have")
        self.tables += tables
        most = TABLES_MOST * (1 + len(self.maps))
        require(0 <= self.tables <= most, f"{self.tables} frames are in use for {len(self.maps)} mappings, beside their pages")

    def step(self, call, state):
        before = self.in_use()
        getattr(self, "on_" + call.letter)(call, state or self.state)
        if state:
            self.counts(call.letter, state, before)
            self.state = state

    def end(self, state):
        """All was given back."""
        self.balanced(state)
        for name in COUNTS:
            require(state[name] == self.first[name], f"in the end {name} of the pool is {state[name]}, not {self.first[name]} as at first")
        kept = state["in_use"] - self.first["in_use"]
        require(0 <= kept <= TABLES_MOST, f"in the end {kept} frames more are in use than at first")


def numbers(text):
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", text)}


def read(lines):
    """[(number of the line, Call or None, state)]: each call with the counts after it. The first and the last stand alone. The state of a
    call in which the machine ended is None."""
    steps, call = [], None
    for place, line in enumerate(lines):
        if found := re.search(r"# call (\d+) (\w)(\S*) (.*)$", line):
            args = [int(n or 0) for n in (found[3] + "...").split(".")][:NUMBERS]
            call = place, Call(int(found[1]), found[2].lower(), args, numbers(found[4]), " void" in found[4])
        elif found := re.search(r"# state (.*)$", line):
            steps.append((*(call or (place, None)), numbers(found[1])))
            call = None
    return steps + ([(*call, None)] if call else [])


def judge(lines, nodes):
    """"" if all lines can be true, else the first that cannot and why. A trace without an end is none."""
    reference, call, state = None, None, None
    for place, call, state in read(lines):
        try:
            if reference is None:
                reference = Reference(nodes, state)
            elif call:
                reference.step(call, state)
            else:
                reference.end(state)
        except Untrue as why:
            after = [line.strip() for line in lines[place + 1 :] if "# state" in line][:1]
            return "\n    ".join([str(why), lines[place].strip(), *after])
    return "" if reference and not call else "the trace has no end"


def hosted_nodes(mem, nodes=1):
    """The frames of each node of the hosted machine with so many bytes, below 3 GiB."""
    share = -(-mem // nodes // (BLOCK << 12)) * BLOCK
    return [(n * share, min((n + 1) * share, mem >> 12)) for n in range(nodes)]


def main():
    parser = argparse.ArgumentParser(description="Judge traces of mm.calls.* by a reference.")
    parser.add_argument("-m", default="256M", help="RAM of the machine")
    parser.add_argument("-n", type=int, default=1, help="its nodes")
    parser.add_argument("traces", nargs="+")
    args = parser.parse_args()
    mem = int(args.m[:-1]) << {"M": 20, "G": 30}[args.m[-1]]
    status = 0
    for path in args.traces:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                wrong = judge(file.read().splitlines(), hosted_nodes(mem, args.n))
        except OSError as reason:
            print(f"{path}: cannot be read: {reason}")
            return 2
        print(f"{path}: {'cannot be true: ' + wrong if wrong else 'can be true'}")
        status |= bool(wrong)
    return status


if __name__ == "__main__":
    sys.exit(main())
