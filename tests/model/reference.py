"""A reference of the page allocator, pools, huge mappings, ranges and bad frames that shares no code with mm/. judge() reads what mm.calls.*
prints (tests/kernel/calls_test.c) and names the first line that cannot be true.

It is written from the comments of mm.h and pools.h, and where these are silent from Linux's pages about hugetlb. It does not foretell which
frame a call gets, but judges the answer: the frame is RAM of the node that was asked for, belongs to nobody, and lies in a block of its
type. A page that moves keeps its marks; a frame that was reported bad is given to nobody from then on. A page leaves a mapping with a round
of flushes. All counts after a call follow from those before it.
"""

import re
from dataclasses import dataclass, field

BLOCK, GIGA = 512, 512 * 512  # frames of large pages
SIZES = {BLOCK: 9, GIGA: 18}  # of pages of pools, and their orders
ZERO, NOFLUSH, NODE, DMA32 = 1, 2, 4, 8
POOL, RESERVE, POPULATE = 1, 2, 8
MOVABLE, CMA = 1, 3  # unmovable and reclaimable pages may share blocks
MAY_MOVE = 16
SHARED_END, DMA_END = 1 << 11, 1 << 20  # 8 MiB, with firmware and the image; 4 GiB
NO_MEMORY, BUSY, INVALID = 12, 16, 22
USES, ORDERS, NUMBERS, MAPPED_MOST, SLOTS_MOST = 3, 10, 4, 4, 32
OWNERS = "free unopened per_cpu pool_free in_use meta gated transit bad reserved".split()
COUNTS = "pages there taken promised surplus overcommit".split()
WAITING_MOST = 64  # bad frames in use
LOG = re.compile(r"\[ *\d+\.\d{6}\] .*\n")  # a line of the log, also in the middle of another
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
    moves: list  # [(first frame, that of the page that took its place)]
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
    letter: str
    may_move: bool
    movable_block: bool  # it lies among pages that can move


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
        self.mark = {page: mark for page, mark in self.mark.items() if page // self.unit != unit}

    @property
    def end(self):
        """Of its addresses; whole GiB, and a guard."""
        return self.at + (-(-self.pages // GIGA) + 1 << 30)

    def units(self, page, count):
        return range(page // self.unit, (page + count - 1) // self.unit + 1)


class Pool:
    """The counts of a pool on a machine of one node, as Linux has them. A call adds what it does."""

    def __init__(self, state, frames):
        self.frames = frames
        self.learn(state, "s")
        self.taken, self.promised, self.overcommit = (self.said(state, name) for name in ("taken", "promised", "overcommit"))

    def said(self, state, name):
        return state[f"{name}{SIZES[self.frames]}"]

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
            persistent = self.said(state, "pages") - self.said(state, "surplus")
            require(persistent == self.persistent, f"{persistent} pages of the pool are persistent, not {self.persistent}")
        for name in ("pages", "there", "surplus"):
            setattr(self, name, self.said(state, name))

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
        """`nodes`: the ranges of frames that are RAM of each, from the machine's command line."""
        self.nodes, self.state = nodes, state
        self.pools = {frames: Pool(state, frames) for frames in SIZES}
        self.owner = {}  # frame: the call that has it
        self.held, self.maps = {}, {}  # by the number of the call that made it
        self.promised = dict.fromkeys(SIZES, 0)  # pages promised to calls, as opposed to mappings
        self.baseline = False  # a mode was named; its pages may be neither made nor restored for lack of frames
        # Frames: reported; out of use; and those that may be given out before, for their page is promised, or firmware shares their block.
        self.bad, self.out, self.loose = set(), set(), set()
        self.cma, self.sure = set(), set()  # blocks kept for ranges, and those of them that had nothing else
        self.seen = set()  # frames that calls or pools have had, so that start-up has not
        self.mixed = False  # memory was short; pages may lie among those of another use
        high = sum(end - first for spans in nodes for first, end in spans if first >= DMA_END)
        self.high, self.room = high > 0, (high or state["ram"]) // 2
        self.first = state
        self.tables = 0  # frames in use for mappings, beside their pages
        self.balanced(state)

    # ---- frames ----

    def node_of(self, first, frames=1):
        """The node whose RAM has all these frames, in one piece."""
        return next((n for n, spans in enumerate(self.nodes) for start, end in spans if start <= first and first + frames <= end), None)

    def plenty(self, frames=0):
        """So much is free that nothing has to be refused, taken from another use, or from another node or zone. No large page is made of a
        block with a bad frame."""
        spoilt = BLOCK * len({bad // BLOCK for bad in self.bad})
        return sum(self.state[name] for name in ("free", "unopened", "per_cpu")) > self.state["ram"] - self.room + frames + spoilt

    def short(self, call, pool, refused, always=False):
        """The call was refused, maybe because there was no memory to make a page: there is not plenty, or maybe no whole GiB, and none is
        free in the pool."""
        wanted = call.args[0] if call.letter == "v" else 1
        scarce = not self.plenty() or pool and pool.frames == GIGA
        return refused and scarce and (always or pool.unpromised < wanted)

    def own(self, number, first, frames, new=True):
        span = range(first, first + frames)
        require(first % min(frames, BLOCK) == 0, f"frame {first} is not aligned to {frames} frames")
        if taken := self.owner.keys() & span:
            raise Untrue(f"frame {min(taken)} is given to call {number} and belongs to call {self.owner[min(taken)]}")
        require(self.node_of(first, frames) is not None, f"frame {first} is no RAM" + (f", or one of {frames}" if frames > 1 else ""))
        blocks = range(first // BLOCK, (first + frames - 1) // BLOCK + 1)
        for bad in self.bad - self.loose if new else ():
            require(bad not in span, f"frame {bad} is given to call {number} and was reported bad")
            require(bad in self.out or bad // BLOCK not in blocks, f"frame {first} is given to call {number}, and bad frame {bad} waits")
        self.owner.update(dict.fromkeys(span, number))
        self.seen.update(span)

    def disown(self, first, frames):
        for frame in range(first, first + frames):
            del self.owner[frame]

    def moved(self, number, old, new):
        """A page took the place of another."""
        held = self.held.get(owner := self.owner.get(old))
        require(held and held.first == old, f"the page at frame {old} moved, which no call has")
        require(held.may_move, f"the page of call {owner} moved and cannot")
        self.own(owner, new, held.frames)
        self.disown(old, held.frames)
        held.first, held.movable_block = new, True
        require(held.frames < BLOCK or new // BLOCK not in self.cma, f"in call {number} a large page moved to frame {new}, kept for ranges")

    def ready(self, first, frames):
        """Can the blocks become a range? Each is known to have only free pages, pages that can move, and those of calls."""
        if self.baseline or not self.plenty(frames):
            return False
        blocks = range(first // BLOCK, (first + frames) // BLOCK)
        pages = [held.first for held in self.held.values() if held.movable_block and held.frames <= BLOCK]
        known = self.sure.union(page // BLOCK for page in (*pages, *self.state["heads9"]) if not self.mixed)
        sound = not any(bad // BLOCK in blocks for bad in self.bad)
        return sound and known.issuperset(blocks) and self.seen.issuperset(range(first, first + frames))

    def made(self, call, frames, node):
        """Pages were given out; `node` is the one that they must be of, + 1, or 0."""
        letter, (_, use, request, _) = call.letter, call.args
        self.own(call.number, call.pfn, frames)
        movable_block = call.type in (MOVABLE, CMA) or frames == BLOCK
        self.held[call.number] = Held(call.pfn, frames, letter, letter in "at" and request & MAY_MOVE, movable_block)
        require(call.refs == 1, f"a new page has {call.refs} references")
        require(call.node == self.node_of(call.pfn), f"frame {call.pfn} is of node {self.node_of(call.pfn)}, not {call.node}")
        require(node in (0, call.node + 1), f"a page of node {call.node} where one of node {node - 1} was asked for")
        kept = not self.cma.isdisjoint(range(call.pfn // BLOCK, (call.pfn + frames - 1) // BLOCK + 1))
        require((call.type == CMA) == (call.pfn // BLOCK in self.cma), f"frame {call.pfn} is of type {call.type}")
        lives = letter in "et" or letter == "c" and frames not in SIZES or letter == "a" and use == MOVABLE and frames < BLOCK
        require(not kept or lives or call.pfn in self.heads(self.pools[frames]), f"frame {call.pfn} is kept for ranges")

    # ---- calls for pages ----

    def on_a(self, call, _state):
        order, use, request, node = call.args
        possible = (order < ORDERS or order == 18) and use < USES and not (request & NODE and node > len(self.nodes))
        if "pfn" not in call.said:
            excused = request & NOFLUSH or request & NODE and len(self.nodes) > 1 or request & DMA32 and self.high or order == 18
            require(not possible or excused or not self.plenty(), f"no page of order {order}, but there is plenty")
            return
        require(possible, "a page for a request that is wrong")
        require(call.order == order, f"a page of order {call.order} where {order} was asked for")
        require(call.pfn % (1 << order) == 0, f"frame {call.pfn} is not aligned to order {order}")
        require(not request & DMA32 or call.pfn < DMA_END, f"frame {call.pfn} is not below 4 GiB")
        require(not request & ZERO or call.zero, "a page that was to be cleared is not zero")
        own = (call.type in (MOVABLE, CMA)) == (use == MOVABLE) or order >= 9 or request & NOFLUSH or self.high or not self.plenty()
        require(own, f"a page for use {use} from a block of type {call.type}, with plenty free")
        self.made(call, 1 << order, node if request & NODE else 0)

    def on_c(self, call, _state):
        order = call.args[0]
        if "pfn" not in call.said:
            used = self.held or self.maps or any(pool.pages for pool in self.pools.values())
            empty = not used and 16 << order <= self.state["ram"]
            require(order >= ORDERS and not empty or not self.plenty(), f"no 2^{order} frames, but there is plenty")
            return
        require(call.order == (0 if ORDERS <= order < 18 else order), f"a page of order {call.order} where 2^{order} frames were asked for")
        self.made(call, 1 << order, 0)

    def range_asked(self, call, in_the_way):
        """The number of frames from call.at on that the call got. It is refused what is no RAM, or where something may be in the way."""
        frames = min(max(call.args[1], 1), BLOCK) * BLOCK
        require((call.err == INVALID) == (self.node_of(call.at, frames) is None), f"error {call.err} for {frames} frames from {call.at} on")
        numbers = {self.owner[frame] for frame in self.owner.keys() & range(call.at, call.at + frames)}
        there = [self.held.get(number, Held(0, BLOCK, "m", False, False)) for number in numbers]  # those of mappings cannot move
        possible = self.ready(call.at, frames) and not any(in_the_way(held) for held in there)
        require(call.err in (0, INVALID) or not possible, f"error {call.err} for {frames} frames from {call.at} on, with nothing in the way")
        return 0 if call.err else frames

    def on_e(self, call, _state):
        if frames := self.range_asked(call, lambda held: not held.may_move):
            require(call.pfn == call.at and call.order == 0, f"the range begins at frame {call.pfn} with a page of order {call.order}")
            self.made(call, frames, 0)

    def on_k(self, call, _state):
        if frames := self.range_asked(call, lambda held: held.frames > BLOCK):
            blocks = range(call.at // BLOCK, (call.at + frames) // BLOCK)
            self.cma.update(blocks)
            self.sure.update(blocks if self.ready(call.at, frames) else ())

    def on_b(self, call, state):
        """A frame that nobody has is out of use at once, unless its page is promised or its block has another use by now."""
        full = call.err == NO_MEMORY and len(self.bad - self.out) >= WAITING_MOST
        require(call.err in (0, BUSY) or full, f"error {call.err} for a bad frame")
        if full:
            return
        owner = self.owner.get(call.at)
        require(call.err or owner is None or call.at in self.out, f"frame {call.at} is out of use, and call {owner} has it")
        pool = next((pool for pool in self.pools.values() if any(call.at - head in range(pool.frames) for head in self.heads(pool))), None)
        free = pool.unpromised > 0 and pool.frames == BLOCK if pool else owner is None
        require(call.err == 0 or not (free and self.ready(call.at // BLOCK * BLOCK, BLOCK)), f"frame {call.at} is free and stays in use")
        require(call.err or call.at in self.bad or state["bad"] > self.state["bad"], f"frame {call.at} is out of use and not counted")
        self.bad.add(call.at)
        (self.out if not call.err else self.loose if pool or call.at < SHARED_END else self.bad).add(call.at)

    def on_t(self, call, _state):
        pool, promised = self.pool_of(call), call.args[0] > 0
        there = self.promised[pool.frames] > 0 if promised else True
        self.promised[pool.frames] -= promised and there
        pooled = promised or pool.unpromised > 0
        there = there and not self.short(call, pool, "pfn" not in call.said) and pool.take(promised)
        require(there == ("pfn" in call.said), f"the pool {'has' if there else 'has not'} a page, and the answer is {call.said}")
        if there:
            require(call.order == SIZES[pool.frames], f"a pool's page has order {call.order}")
            require(not pooled or call.pfn in self.heads(pool), f"the page at frame {call.pfn} was not in the pool")
            self.made(call, pool.frames, 0)

    def on_f(self, call, _state):
        held = self.held.pop(call.args[0])
        require(call.lost == 0, f"{call.lost} marks of call {call.args[0]} were lost while it held the page")
        self.disown(held.first, held.frames)
        if held.letter == "t":
            self.pools[held.frames].give()

    # ---- the pool ----

    def pool_of(self, call):
        return self.pools[GIGA if call.args[3] else BLOCK]

    def heads(self, pool, state=None):
        """The first frames of its free pages."""
        return (state or self.state)[f"heads{SIZES[pool.frames]}"]

    def on_g(self, call, _state):
        want, node, mode = call.args[:3]
        pool = self.pool_of(call)
        self.baseline |= mode > 0
        most = 0 if node > len(self.nodes) else want
        require(call.n <= most, f"the pool grew by {call.n}, more than {most}")
        excused = mode > 0 or node > 0 and len(self.nodes) > 1 or not self.plenty(want * BLOCK) or pool.frames == GIGA
        require(call.n == most or excused, f"the pool grew by {call.n} of {most}, with plenty free")
        pool.grow(call.n)

    def on_s(self, call, _state):
        want, node = call.args[:2]
        pool = self.pool_of(call)
        most = 0 if node > len(self.nodes) else min(want, pool.unpromised)
        require(call.n <= most, f"the pool shrank by {call.n}, but {most} pages could go")
        require(call.n == most or self.baseline or len(self.nodes) > 1, f"the pool shrank by {call.n}, and {most} pages could go")
        pool.leave(most if len(self.nodes) == 1 else call.n)
        if len(self.nodes) == 1:
            pool.grow(most - call.n, most - call.n)  # what could not be restored

    def on_z(self, call, _state):
        target, pool = call.args[0], self.pool_of(call)
        if pool.frames == GIGA or not self.plenty(target * BLOCK):
            target = min(target, max(call.n, pool.persistent))
        pool.resize(target)
        require(call.n == pool.persistent, f"resized to {call.n} pages, not to {pool.persistent}")

    def on_d(self, call, state):
        """The parts of the pages that were split are exactly these."""
        large, small = self.pools[GIGA], self.pools[BLOCK]
        self.baseline |= call.args[2] > 0
        most = min(call.args[0], large.unpromised)
        require(call.n == most or call.n < most and self.baseline, f"{call.n} pages were split of {most} that could be")
        gone, come = (self.heads(large) - self.heads(large, state), self.heads(small, state) - self.heads(small))
        parts = {part for head in gone for part in range(head, head + GIGA, BLOCK)}
        require(len(gone) == call.n, f"{call.n} pages were split, and {len(gone)} are gone")
        require(come == parts, f"of {len(parts)} parts {len(come & parts)} came into the pool, and {len(come - parts)} other pages")
        large.leave(call.n)
        small.grow(call.n * BLOCK)

    def on_o(self, call, _state):
        self.pool_of(call).overcommit = call.args[0]

    def on_v(self, call, state):
        count, pool = call.args[0], self.pool_of(call)
        short = self.short(call, pool, call.n < count)
        if short:
            pool.learn(state, call.letter)  # free pages that were surplus may have gone
        done = not short and pool.reserve(count)
        require(call.n == (count if done else 0), f"{call.n} pages were promised, where {count} {'could' if done else 'could not'} be")
        self.promised[pool.frames] += call.n

    def on_u(self, call, _state):
        pool = self.pool_of(call)
        count = min(call.args[0], self.promised[pool.frames])
        require(call.n == count, f"{call.n} promises were taken back, not {count}")
        self.promised[pool.frames] -= count
        pool.unreserve(count)

    # ---- mappings ----

    def bring(self, mapping, page):
        """A page of its size comes to the mapping. False if there is none."""
        if page in mapping.there:
            return True
        if mapping.unit == 1:
            mapping.there[page] = False
            return True
        promised = mapping.promises > 0
        pooled = self.pools[mapping.unit].take(promised)
        mapping.promises -= promised
        if pooled or not mapping.flags & POOL:
            mapping.there[page] = pooled
        return page in mapping.there

    def on_m(self, call, state):
        flags, pages, size = call.args[:3]
        unit, count = (1, BLOCK, GIGA)[min(size, 2)], min(max(pages, 1), MAPPED_MOST)
        mapping = Mapping(call.at, unit, count * unit, flags | POOL * bool(flags & RESERVE))
        pool = self.pools.get(unit)
        slots = sum(other.end - other.at >> 30 for other in (*self.maps.values(), mapping))
        possible = not (flags & RESERVE and not pool) and (call.at != 0 or slots <= SLOTS_MOST)  # addresses run out
        if self.short(call, pool, call.at == 0, True):
            if pool:
                pool.learn(state, call.letter)  # what came was given back
            return
        if possible and flags & RESERVE:
            possible = pool.reserve(count)
            mapping.promises = count if possible else 0
        if possible and flags & POPULATE:
            possible = all([self.bring(mapping, page) for page in range(count)])
            if not possible:
                for pooled in mapping.there.values():
                    if pooled:
                        pool.give()
        require(possible == (call.at != 0), f"a mapping {'can' if possible else 'cannot'} be made, and the answer is {call.at}")
        if not possible:
            return
        require(call.at % (1 << 30) == 0, f"the mapping begins at {call.at:x}, not at a GiB")
        for number, other in self.maps.items():
            require(call.at >= other.end or other.at >= mapping.end, f"the mapping at {call.at:x} is too near to that of call {number}")
        self.maps[call.number] = mapping

    def on_w(self, call, state):
        mapping = self.maps[call.args[0]]
        page = call.args[1] % mapping.pages
        unit, place = divmod(page, mapping.unit)
        came = unit not in mapping.there
        short = came and self.short(call, self.pools.get(mapping.unit), call.err == NO_MEMORY, mapping.unit == 1)
        there = not short and self.bring(mapping, unit)
        require(call.err == (0 if there else NO_MEMORY), f"error {call.err} where a page {'can' if there else 'cannot'} be had")
        if not there:
            return
        if unit not in mapping.first:
            self.own(call.number, call.pfn - place, mapping.unit, came)
            mapping.first[unit] = call.pfn - place
        require(call.pfn == mapping.first[unit] + place, f"page {page} was frame {mapping.first[unit] + place} and is {call.pfn}, though it stayed")
        require(not came or mapping.there[unit] or call.pfn // BLOCK not in self.cma, f"page {page} is frame {call.pfn}, kept for ranges")
        leaf = range(page // call.leaf * call.leaf, (page // call.leaf + 1) * call.leaf)
        fits = call.leaf == mapping.unit or call.leaf in (1, BLOCK) and call.leaf < mapping.unit and unit in mapping.cut
        require(fits, f"page {page} is mapped by a leaf of {call.leaf} frames")
        require(len({part in mapping.read_only for part in leaf}) == 1, f"page {page} has the rights of others in {call.leaf} frames")
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
        mapping = self.maps[call.args[0]]
        page, count = self.span(call, mapping)
        whole = page % mapping.unit == 0 and count % mapping.unit == 0
        require(call.err == (0 if whole else INVALID), f"error {call.err} for pages {page} to {page + count}")
        if not whole:
            return
        for unit in mapping.units(page, count):
            if mapping.flags & RESERVE:
                mapping.forget(unit)  # the page stays, cleared, so that nobody else can have it
            elif unit in mapping.there and self.drop(mapping, unit, state):
                self.pools[mapping.unit].give()

    def on_p(self, call, state):
        mapping = self.maps[call.args[0]]
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
        mapping = self.maps[call.args[0]]
        for unit in list(mapping.there):
            if self.drop(mapping, unit, state):
                self.pools[mapping.unit].give()
        if mapping.promises:
            self.pools[mapping.unit].unreserve(mapping.promises)
        del self.maps[call.args[0]]

    # ---- counts ----

    def in_use(self):
        """Frames that calls have, beside those of page tables."""
        held = sum(held.frames for held in self.held.values() if held.letter != "t")
        mapped = sum(mapping.unit for mapping in self.maps.values() for pooled in mapping.there.values() if not pooled)
        return held + mapped + sum(pool.taken * pool.frames for pool in self.pools.values())

    def balanced(self, state):
        total = sum(state[name] for name in OWNERS)
        require(total == state["ram"], f"the owners have {total} frames, and there are {state['ram']}")
        for pool in self.pools.values():
            pages, there, taken = (pool.said(state, name) for name in ("pages", "there", "taken"))
            require(pages == there + taken, f"the pool has {pages} pages, not those free and in use")
            heads = self.heads(pool, state)
            require(len(heads) == there, f"the pool has {there} free pages, and {len(heads)} are in it")

    def pooled(self, pool, letter, state):
        """The counts of the pool, and the pages that came into it."""
        if len(self.nodes) > 1:
            pool.learn(state, letter)
        lost = pool.pages - pool.said(state, "pages")
        if 0 < lost <= len(self.bad) and (pool.frames == GIGA or not self.plenty()):
            pool.leave(lost)  # no page could take the place of a bad one
        for name in COUNTS:
            said = pool.said(state, name)
            require(said == getattr(pool, name), f"{name} of the pool is {said}, not {getattr(pool, name)}")
        for head in self.heads(pool, state) - self.heads(pool):
            span = range(head, head + pool.frames)
            if taken := self.owner.keys() & span:
                raise Untrue(f"the page at frame {head} is free in the pool, and call {self.owner[min(taken)]} has {min(taken)}")
            self.seen.update(span)
            require(self.node_of(head, pool.frames) is not None, f"the pool's page at frame {head} is no RAM")
            require(not any(bad in span for bad in self.out), f"the pool's page at frame {head} has a bad frame")
            kept = not self.cma.isdisjoint(range(head // BLOCK, (head + pool.frames) // BLOCK))
            require(letter not in "gzv" or not kept, f"the pool's page at frame {head} is kept for ranges")

    def counts(self, letter, state, before):
        self.balanced(state)
        for name in ("ram", "reserved", "transit"):
            require(state[name] == self.state[name], f"{name} was {self.state[name]} and is {state[name]}")
        for pool in self.pools.values():
            self.pooled(pool, letter, state)
        bad, free = state["bad"] - self.first["bad"], {frame for frame in self.bad if frame not in self.owner}
        least = max(len(self.out), self.state["bad"] - self.first["bad"])
        require(least <= bad <= len(free), f"{bad} frames are bad, of {len(free)} that nobody has")
        if bad == len(free):
            self.out |= free
            self.loose -= free
        came = sum((pool.said(state, "there") - pool.said(self.state, "there")) * pool.frames for pool in self.pools.values())
        require(state["pool_free"] - self.state["pool_free"] == came, "pool_free is not the pools' free pages")
        require(state["done"] <= state["g"], f"round {state['done']} is over, of {state['g']}")
        tables = state["in_use"] - self.state["in_use"] - (self.in_use() - before)
        require(tables == 0 or letter in "mwrpx", f"{state['in_use']} frames are in use, {tables} more than calls have")
        self.tables += tables
        most = TABLES_MOST * (1 + len(self.maps)) + sum(GIGA // BLOCK + 1 for of in self.maps.values() if of.unit == GIGA for _ in of.cut)
        require(0 <= self.tables <= most, f"{self.tables} frames are in use for {len(self.maps)} mappings, beside their pages")

    def step(self, call, state):
        before = self.in_use()
        self.mixed |= not self.plenty()
        for old, new in call.moves:
            self.moved(call.number, old, new)
        made = {"f": self.held, **dict.fromkeys("wrpx", self.maps)}.get(call.letter, {})
        there = call.args[0] in made
        require(there != call.void or call.letter not in "fwrpx", f"call {call.args[0]} has {'a' if there else 'no'} page or mapping")
        if not call.void:
            getattr(self, "on_" + call.letter)(call, state or self.state)
        if state:
            self.counts(call.letter, state, before)
            self.state = state

    def end(self, state):
        """All was given back."""
        self.balanced(state)
        for name in (name + str(order) for order in SIZES.values() for name in COUNTS):
            require(state[name] == self.first[name], f"in the end {name} is {state[name]}, not {self.first[name]} as at first")
        kept = state["in_use"] - self.first["in_use"]
        require(0 <= kept <= TABLES_MOST, f"in the end {kept} frames more are in use than at first")
        require(state["bad"] - self.first["bad"] <= len(self.bad), f"in the end {state['bad']} frames are bad, more than were reported")


def numbers(text):
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", text)}


def state_of(text):
    state = numbers(text)
    for size, order in SIZES.items():
        runs = re.findall(r"(\d+)\+(\d+)", re.search(rf"heads{order}=(\S*)|$", text)[1] or "")
        state[f"heads{order}"] = frozenset(int(first) + n * size for first, count in runs for n in range(int(count)))
    return state


def read(lines):
    """[(number of the line, Call or None, state)]: each call with the counts after it. The first and the last stand alone. The state of a
    call in which the machine ended is None."""
    steps, call = [], None
    for place, line in enumerate(lines):
        if found := re.search(r"# call (\d+) (\w)(\S*) (.*)$", line):
            args = [int(n or 0) for n in (found[3] + "...").split(".")][:NUMBERS]
            moves = [(int(old), int(new)) for old, new in re.findall(r"move=(\d+)\.(\d+)", found[4])]
            call = place, Call(int(found[1]), found[2].lower(), args, numbers(found[4]), moves, " void" in found[4])
        elif found := re.search(r"# state (.*)$", line):
            steps.append((*(call or (place, None)), state_of(found[1])))
            call = None
    return steps + ([(*call, None)] if call else [])


def judge(lines, nodes):
    """"" if all lines can be true, else the first that cannot and why. A trace without an end is none."""
    reference, call, state = None, None, None
    lines = LOG.sub("", "\n".join(lines)).splitlines()
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
    """The ranges of frames of each node of the hosted machine with so many bytes. What 3 GiB do not hold lies above 4."""
    ram = mem >> 12
    spans = [(0, ram)] if ram <= 3 * GIGA else [(0, 3 * GIGA), (4 * GIGA, ram + GIGA)]
    share = -(-spans[-1][1] // nodes // BLOCK) * BLOCK
    cut = [[(max(first, n * share), min(end, (n + 1) * share)) for first, end in spans] for n in range(nodes)]
    return [[span for span in of if span[0] < span[1]] for of in cut]
