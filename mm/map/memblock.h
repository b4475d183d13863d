/*
 * Boot memory: which physical ranges are RAM, which of them are taken, and which node each belongs
 * to.
 *
 *   as reported    |--RAM--|..|----RAM----|      unsorted, overlapping, unaligned, any number
 *                       |rsvd|    |acpi|
 *   memory         [=====]..   [==]    [===]     whole pages, sorted, merged, one node each
 *   reserved        ##                   #       kernel, what the loader left, what
 *                                                memblock_alloc() gave out
 *
 * All allocations before the buddy exists are made here. mm_init() freezes the lists. The ranges
 * are then kept for ever, because sections that are opened later read them.
 *
 * Boot CPU only, until frozen; read-only and lock-free afterwards.
 */
#pragma once

#include "kernel/lib/types.h"

struct boot_info;

enum memblock_owner {
	OWNER_FIRMWARE,
	OWNER_IMAGE,
	OWNER_LOADER,
	OWNER_BOOT,
	OWNER_BAD /* badram= */
};

struct memblock_range {
	phys_t start, end;         /* whole pages */
	node_t node;               /* of memory: its node; of a reserved range: unused */
	enum memblock_owner owner; /* reserved only */
};

struct memblock_list {
	struct memblock_range *range;
	size_t count, max;
};

extern struct memblock_list memblock_memory, memblock_reserved;

/*
 * Keep [start, end) out of use (rounded outwards to pages). Overlaps are allowed; the first owner
 * wins.
 */
void memblock_reserve(phys_t start, phys_t end, enum memblock_owner owner);

/*
 * Take `size` bytes, `align`-aligned (power of two, >= one page), zeroed, lying below `limit` (0:
 * anywhere that phys_to_virt() reaches now), from `node` if possible (NODE_NONE: any). The highest
 * free address is taken, so that low memory stays free. Returns the physical address, or 0. The
 * owner is OWNER_BOOT; memblock_free() gives the frames back.
 */
phys_t memblock_alloc(u64 size, u64 align, phys_t limit, node_t node);
/* memblock_alloc() without zeroing: the caller writes all that is read later. */
phys_t memblock_alloc_raw(u64 size, u64 align, phys_t limit, node_t node);
void memblock_free(phys_t start, u64 size);

/*
 * memblock_alloc() for tables of the boot code, returning a virtual address. If there is no memory,
 * it calls memblock_too_little().
 */
void *memblock_alloc_or_die(u64 size, node_t node, const char *what);

/*
 * The machine has too little RAM for `what`, which it cannot do without. Print that, with the
 * amount that badram= withholds, and end the run as failed. There is no backtrace, because this is
 * not a bug.
 */
__noreturn void memblock_too_little(const char *what);

/* Called once the direct map covers all RAM: allocations may then lie anywhere. */
void memblock_direct_map_ready(void);

/* From now on the ranges are only read: memory belongs to the buddy. */
void memblock_freeze(void);

/*
 * Totals for the machine page. Span: from address 0 to the last byte of RAM; holes: span minus RAM.
 */
struct memblock_totals {
	u64 ram_bytes, span_bytes, hole_bytes, reserved_bytes;
};
struct memblock_totals memblock_totals(void);

/* Bytes of RAM on a node. */
u64 memblock_node_bytes(node_t node);

/* ---- over any pair of lists: the machine's, those of private machines, and of tests ---- */

/*
 * Add a range of whole pages. Only the parts that are not in the list yet are added, so the first
 * range to claim a byte keeps it. False if the list is full; parts added until then stay.
 */
bool memblock_list_add(struct memblock_list *list, struct memblock_range range);

/*
 * Remove [start, end), splitting ranges that it cuts in two. False if there is no room for the
 * second half.
 */
bool memblock_list_subtract(struct memblock_list *list, phys_t start, phys_t end);

/* Bytes of the list's ranges that lie in [start, end). */
u64 memblock_list_bytes(const struct memblock_list *list, phys_t start, phys_t end);

/* Sort out the ranges that the loader reported. 0, or -ENOMEM if there is no usable RAM at all. */
int memblock_sort_out(const struct boot_info *info, struct memblock_list *memory,
		      struct memblock_list *reserved);

/* Assign RAM in [start, end) to a node. RAM that is not assigned stays on node 0. */
void memblock_list_set_node(struct memblock_list *memory, phys_t start, phys_t end, node_t node);

/*
 * First frame of [start, end) that is RAM at the kernel's disposal: free, in use, or its image.
 * PFN_NONE if there is none. RAM that firmware keeps, or that badram= names, does not count.
 */
pfn_t memblock_find_own(const struct memblock_list *memory, const struct memblock_list *reserved,
			phys_t start, phys_t end);

/* The address that memblock_alloc() would take, or 0. */
phys_t memblock_find(const struct memblock_list *memory, const struct memblock_list *reserved,
		     u64 size, u64 align, phys_t limit, node_t node);
