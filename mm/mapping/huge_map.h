/*
 * Huge mappings, internals: the calls of mm.h, and the work of a touch.
 *
 *   HUGE_MAP_BASE | guard | A A A | guard | B | guard | C C C C ...    in slots of 1 GiB,
 *                                                                      each mapping in whole slots
 *
 * With HUGE_LOW the same at HUGE_LOW_BASE, in the lower half (<arch/memory.h>). The entries there
 * are the kernel's, too: global, and without the user bit.
 *
 * Page-table entries are the only record of what is mapped, and a claimed entry (arch/pgtable.h) is
 * the only lock. If several CPUs touch one page, one of them claims the entry, finds a page and
 * clears it; the others wait for the entry. No page is therefore found twice, cleared twice or
 * leaked, and touches of different pages share nothing but the pool. Tables below a slot belong to
 * the mapping and are made in the same way; upper ones (512 GiB) are kept.
 *
 * A CPU that works in a mapping pins it (struct percpu). The CPU that unmaps takes the slots away,
 * waits until nobody has the mapping pinned, and then owns the tables that it walks. The slots are
 * free for other mappings only after the round, so nobody meets a stale translation.
 */
#pragma once

#include <arch/pgtable.h>

#include "kernel/core/shootdown.h"
#include "mm/mapping/fault.h"
#include "mm/mm.h"

struct huge_map {
	virt_t start;
	u64 size;            /* bytes that may be touched; atomic, because it grows */
	u64 slots;           /* slots taken, without the guards */
	enum pt_level level; /* page size of the mapping */
	unsigned flags;
	node_t node;   /* with HUGE_NODE or HUGE_BIND */
	u32 read_only; /* atomic */
	u64 promised;  /* pool pages reserved but not yet taken; atomic */
	huge_exhausted_fn *exhausted;
	void *ctx;
	virt_t stack_of; /* of a stack: the caller of stack_alloc(); else 0; atomic */
};

#define HUGE_SLOT GIB(1)

static inline bool huge_map_covers(virt_t addr)
{
	return addr - HUGE_MAP_BASE < HUGE_MAP_SIZE || addr - HUGE_LOW_BASE < HUGE_LOW_SIZE;
}

static inline bool huge_map_has(const struct huge_map *map, virt_t start, u64 size)
{
	const u64 all = atomic_load_relaxed(&map->size);

	return start - map->start < all && size <= all - (start - map->start);
}

/* Handle a touch, called from fault_resolve(). Interrupts off. */
enum fault_result huge_fault(virt_t addr, bool write, bool exec, bool interruptible);

/* Why huge_pin() finds no mapping at `addr`. */
enum fault_result huge_map_missing(virt_t addr);

/*
 * huge_map.c: pin the mapping at an address. `map` is NULL if there is none; otherwise it stays
 * until huge_unpin(). Pins nest if they are of one mapping.
 */
struct huge_pin {
	struct huge_map *map;
	const void *before;
};
struct huge_pin huge_pin(virt_t addr);
/* only if these are whole pages of one mapping; with size 0 the address alone counts */
struct huge_pin huge_pin_range(const void *addr, u64 size);
void huge_unpin(struct huge_pin pin);

/* huge_unmap.c: take away the pages in a range, flush with one round, and free what was taken. */
struct huge_taken {
	struct shootdown_batch batch;
	struct page *pages, *tables; /* chains (page_chain_push()) */
	/*
	 * by size; only pages of the mapping's own size were promised before, not smaller
	 * substitutes
	 */
	u64 pool_pages[PT_PUD + 1];
};
enum huge_tables { HUGE_KEEP_TABLES, HUGE_TAKE_TABLES };
void huge_take_range(virt_t start, u64 size, enum huge_tables tables, struct huge_taken *taken);
void huge_flush_and_give(struct huge_taken *taken);

/*
 * Promise pool pages of the mapping's own size for `pages` of its pages that are not present.
 * Returns 0 or -ENOMEM.
 */
int huge_promise(struct huge_map *map, u64 pages);
struct pool *huge_pool(enum pt_level level);

/*
 * For accounting, while nobody works in any mapping. huge_map_at(): the mapping of an address, or
 * NULL. huge_map_next(): all mappings in the order of their addresses, from NULL to NULL.
 * huge_visit(): each entry that maps a page, in any mapping or none.
 */
struct huge_map *huge_map_at(virt_t addr);
struct huge_map *huge_map_next(const struct huge_map *after);
typedef void huge_leaf_fn(void *arg, pte_t *entry, virt_t virt, enum pt_level level);
void huge_visit(huge_leaf_fn *leaf, void *arg);

/* The counters of struct huge_usage. */
extern struct huge_usage huge_counts;

static inline u64 huge_page_bytes(const struct huge_map *map)
{
	return pt_level_size(map->level);
}
