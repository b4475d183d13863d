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
BLOCK_FLAGS = ("BLOCK_FREE", "BLOCK_TRANSIT", "BLOCK_POOL", "BLOCK_POOL_FREE", "BLOCK_MAPPED", "BLOCK_MEMMAP")


def page(value):
    flags = flag_names(int(value["flags"]), constants(*PAGE_FLAGS))
    return f"page: {flags}, order {int(value['order'])}, zone {int(value['zone'])}, refcount {int(value['refcount'])}"


def block(value):
    word = value["word"].address.cast(gdb.lookup_type("struct block_word").pointer()).dereference()
    state = gdb.Value(int(word["state"])).cast(gdb.lookup_type("enum block_state"))
    return (
        f"block: {state}, {flag_names(int(word['flags']), constants(*BLOCK_FLAGS))}, order {int(word['order'])}, "
        f"type {int(word['type'])}, zone {int(word['zone'])}, tag {int(value['tag'])}"
    )


def zone(value):
    free = int(value["free_small"]) + sum(int(value["free_class"][i]) for i in range(FREE_CLASSES))
    return (
        f"zone {int(value['index'])} (node {int(value['node'])}, {value['kind']}), "
        f"frames {int(value['start_pfn']):x} to {int(value['end_pfn']):x}: {int(value['ram'])} of RAM, {free} free, "
        f"{int(value['unopened'])} unopened, {int(value['transit'])} in transit, {int(value['bad'])} bad, {int(value['reserved'])} reserved"
    )


def percpu(value):
    return (
        f"CPU {int(value['id'])} on node {int(value['node'])}: {'idle' if int(value['idle']) else 'running'}, "
        f"TLB generation {int(value['tlb_published'])}, {int(value['locks_held'])} locks held"
    )


PRINTERS = {function.__name__: function for function in (page, block, zone, percpu)}


class OneLine:
    def __init__(self, value, text):
        self.to_string = lambda: text(value)


def find(value):
    kind = value.type.strip_typedefs()
    return OneLine(value, PRINTERS[kind.tag]) if kind.code == gdb.TYPE_CODE_STRUCT and kind.tag in PRINTERS else None


gdb.pretty_printers.append(find)
