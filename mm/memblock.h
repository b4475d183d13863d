/*
 * Boot memory: which physical ranges are RAM, which of them are taken, which node each belongs to.
 *
 *   as reported    |--RAM--|..|----RAM----|      unsorted, overlapping, unaligned, any number
 *                       |rsvd|    |acpi|
 *   memory         [=====]..   [==]    [===]     whole pages, sorted, merged, one node each
 *   reserved        ##                   #       kernel, loader's leavings, what memblock_alloc() gave out
 *
 * Everything before the buddy allocates here. mm_init() freezes it; the ranges are then kept for ever, because
 * sections that are opened later read them.
 *
 * Boot CPU only, until frozen; read-only and lock-free afterwards.
 */
#pragma once

#include "kernel/types.h"

struct boot_info;

enum memblock_owner { OWNER_FIRMWARE, OWNER_IMAGE, OWNER_LOADER, OWNER_BOOT, OWNER_BAD /* badram= */ };

struct memblock_range {
	phys_t start, end; /* whole pages */
	node_t node;       /* memory: its node; reserved: unused */
	enum memblock_owner owner; /* reserved only */
};

struct memblock_list {
	struct memblock_range *range;
	size_t count, max;
};

extern struct memblock_list memblock_memory, memblock_reserved;

/* Sort out what the loader reported. 0, or -ENOMEM if there is no usable RAM at all. */
int memblock_init(const struct boot_info *info);

/* Keep [start, end) out of use (rounded outwards to pages). Overlaps are fine; the first owner wins. */
void memblock_reserve(phys_t start, phys_t end, enum memblock_owner owner);

/*
 * Take `size` bytes, `align`-aligned (power of two, >= one page), zeroed, lying below `limit` (0: anywhere that
 * phys_to_virt() reaches now), from `node` if possible (NODE_NONE: any). Highest address first, so low memory stays.
 * Returns the physical address, or 0. Owner is OWNER_BOOT: frames come back with memblock_free().
 */
phys_t memblock_alloc(u64 size, u64 align, phys_t limit, node_t node);
void memblock_free(phys_t start, u64 size);

/* The same as an address, for tables of the boot code; if there is no memory for it, memblock_too_little(). */
void *memblock_alloc_or_die(u64 size, const char *what);

/*
 * The machine has too little RAM for `what`, which it cannot do without: say so, with what badram= has to do with it, and end the
 * run as failed. No bug of anybody's, so there is no backtrace.
 */
__noreturn void memblock_too_little(const char *what);

/* Assign the node of RAM in [start, end); RAM that nobody assigned stays on node 0. */
void memblock_set_node(phys_t start, phys_t end, node_t node);

/* Once the direct map covers all RAM: allocations may lie anywhere. */
void memblock_direct_map_ready(void);

/* From now on the ranges only answer questions: memory belongs to the buddy. */
void memblock_freeze(void);

/* Totals for the machine page. Span: first byte to last; holes: span minus RAM. */
struct memblock_totals {
	u64 ram_bytes, span_bytes, hole_bytes, reserved_bytes;
};
struct memblock_totals memblock_totals(void);

/* Bytes of RAM on a node. */
u64 memblock_node_bytes(node_t node);

/*
 * First frame of [start, end) that is RAM of the kernel's: free, in use, or its image; PFN_NONE if there is none. RAM that firmware
 * keeps, or that badram= names, is not.
 */
pfn_t memblock_first_own(phys_t start, phys_t end);

/* ---- the same over any pair of lists: private machines and tests ---- */

/*
 * Add a range of whole pages: only those parts that are not in the list yet, so the first to claim a byte keeps it.
 * False if the list is full; what was added until then stays.
 */
bool memblock_list_add(struct memblock_list *list, struct memblock_range range);

/* Take [start, end) out, splitting ranges it cuts in two. False if there is no room for the second half. */
bool memblock_list_subtract(struct memblock_list *list, phys_t start, phys_t end);

/* As memblock_init(), memblock_set_node(), memblock_first_own(); and the place memblock_alloc() would take, or 0. */
int memblock_sort_out(const struct boot_info *info, struct memblock_list *memory, struct memblock_list *reserved);
void memblock_list_set_node(struct memblock_list *memory, phys_t start, phys_t end, node_t node);
pfn_t memblock_find_own(const struct memblock_list *memory, const struct memblock_list *reserved, phys_t start, phys_t end);
phys_t memblock_find(const struct memblock_list *memory, const struct memblock_list *reserved, u64 size, u64 align,
		     phys_t limit, node_t node);
