"""Printers for gdb: a struct page, a block record, a zone and the data of a CPU, as one line each. `make debug` loads this file.

    (gdb) p *pfn_page(&mm_kernel, 0x1234)
    $1 = page: PAGE_BUDDY, order 8, zone 1, refcount 0

    (gdb) p mm_kernel.zone[1]
    $2 = zone 1 (node 0, ZONE_NORMAL), frames 100000 to 340000: 2621440 of RAM, 31000 free, ...
"""

import gdb

FREE_CLASSES = 4


def flag_names(value, names):
    set_here = [name for name, bit in names if value & bit]
    left = value & ~sum(bit for _, bit in names)
    return ", ".join(set_here + ([hex(left)] if left else [])) or "no flags"


def constants(*names):
    return [(name, int(gdb.parse_and_eval(name))) for name in names]


PAGE_FLAGS = (
    "PAGE_BUDDY", "PAGE_PCP", "PAGE_COMPOUND", "PAGE_TAIL", "PAGE_RESERVED", "PAGE_BOOT", "PAGE_HUGETLB", "PAGE_OPTIMISED",
    "PAGE_MOVABLE", "PAGE_BAD",
)  # fmt: skip
BLOCK_FLAGS = ("BLOCK_FREE", "BLOCK_TRANSIT", "BLOCK_POOL", "BLOCK_POOL_FREE", "BLOCK_MAPPED", "BLOCK_POISONED")


class Page:
    """A struct page: the kind of page that it heads or belongs to, and its references."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        page = self.value
        return (
            f"page: {flag_names(int(page['flags']), constants(*PAGE_FLAGS))}, order {int(page['order'])}, "
            f"zone {int(page['zone'])}, refcount {int(page['refcount'])}"
        )


class Block:
    """A block record: state, flags, type and links."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        block = self.value
        word = block["word"].address.cast(gdb.lookup_type("struct block_word").pointer()).dereference()
        state = gdb.Value(int(word["state"])).cast(gdb.lookup_type("enum block_state"))
        return (
            f"block: {state}, {flag_names(int(word['flags']), constants(*BLOCK_FLAGS))}, order {int(word['order'])}, "
            f"type {int(word['type'])}, zone {int(word['zone'])}, tag {int(block['tag'])}"
        )


class Zone:
    """A zone: its place and its pages."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        zone = self.value
        free = int(zone["free_small"]) + sum(int(zone["free_class"][i]) for i in range(FREE_CLASSES))
        return (
            f"zone {int(zone['index'])} (node {int(zone['node'])}, {zone['kind']}), "
            f"frames {int(zone['start_pfn']):x} to {int(zone['end_pfn']):x}: {int(zone['ram'])} of RAM, {free} free, "
            f"{int(zone['unopened'])} unopened, {int(zone['transit'])} in transit, {int(zone['bad'])} bad, "
            f"{int(zone['reserved'])} reserved"
        )


class Percpu:
    """The data of a CPU: its number, and its progress in shootdowns."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        cpu = self.value
        return (
            f"CPU {int(cpu['id'])} on node {int(cpu['node'])}: {'idle' if int(cpu['idle']) else 'running'}, "
            f"TLB generation {int(cpu['tlb_published'])}, {int(cpu['locks_held'])} locks held"
        )


PRINTERS = {"page": Page, "block": Block, "zone": Zone, "percpu": Percpu}


def find(value):
    kind = value.type.strip_typedefs()
    return PRINTERS[kind.tag](value) if kind.code == gdb.TYPE_CODE_STRUCT and kind.tag in PRINTERS else None


gdb.pretty_printers.append(find)
