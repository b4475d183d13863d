/*
 * Huge mappings, inside: the calls of mm.h, and what a touch does.
 *
 *   HUGE_MAP_BASE | guard | A A A | guard | B | guard | C C C C ...      in slots of 1 GiB, each mapping in whole slots
 *
 * Page-table entries are the only record of what is mapped, and a claimed entry (arch/pgtable.h) the only lock: of
 * several CPUs that touch one page, one claims the entry, finds a page and clears it; the others wait for the entry.
 * So no page is found twice, cleared twice or leaked, and touches of different pages share nothing but the pool.
 * Tables below a slot are the mapping's own, made the same way; upper ones (512 GiB) are kept.
 *
 * A CPU that works in a mapping pins it (struct percpu): unmapping takes the slots away, waits until nobody has it
 * pinned, and then owns what it walks. The slots are free for others only after the round, so nobody meets a stale
 * translation.
 */
#pragma once

#include <arch/pgtable.h>

#include "kernel/fault.h"
#include "kernel/shootdown.h"
#include "mm/mm.h"

struct huge_map {
	virt_t start;
	u64 size;            /* bytes that may be touched; atomic: it grows */
	u64 slots;           /* taken, guards not counted */
	enum pt_level level; /* of its pages */
	unsigned flags;
	u32 read_only; /* atomic */
	u64 promised;  /* pool pages reserved and not yet taken; atomic */
	huge_exhausted_fn *exhausted;
	void *ctx;
};

#define HUGE_SLOT GIB(1)

static inline bool huge_map_covers(virt_t addr)
{
	return addr - HUGE_MAP_BASE < HUGE_MAP_SIZE;
}

static inline bool huge_map_has(const struct huge_map *map, virt_t start, u64 size)
{
	const u64 all = atomic_load_relaxed(&map->size);

	return start - map->start < all && size <= all - (start - map->start);
}

/* A touch, from fault_resolve(). Interrupts off. */
enum fault_result huge_fault(virt_t addr, bool write, bool interruptible);
void huge_fault_describe(virt_t addr, bool write, bool exec, char *buf, size_t size);

/* huge_map.c: the mapping at an address, or NULL; it stays until it is unpinned. Pins nest if they are of one mapping. */
struct huge_pin {
	struct huge_map *map;
	const void *before;
};
struct huge_pin huge_pin(virt_t addr);
struct huge_pin huge_pin_range(const void *addr, u64 size); /* if these are whole pages of one; size 0: the address */
void huge_unpin(struct huge_pin pin);

/*
 * huge_fault.c: bring the page of `addr`, which lies in the pinned mapping, unless it is there. `is_hint`: `addr` is wanted
 * first. False: no page, or no memory for a table.
 */
bool huge_touch(struct huge_map *map, virt_t addr, bool is_hint);

/* huge_unmap.c: take pages away, or change their rights, in a range; flush with one round; give back what was taken. */
struct huge_taken {
	struct shootdown_batch batch;
	struct page *pages, *tables; /* chained through private[0] */
	u64 pool_pages[PT_PUD + 1];  /* by size: those of the mapping's own were promised before, not what stood in for them */
};
enum huge_tables { HUGE_KEEP_TABLES, HUGE_TAKE_TABLES };
void huge_take_range(virt_t start, u64 size, enum huge_tables tables, struct huge_taken *taken);
void huge_flush_and_give(struct huge_taken *taken);

/* Promise pool pages of its own size for `pages` of the mapping that have none. 0 or -ENOMEM. */
int huge_promise(struct huge_map *map, u64 pages);
struct pool *huge_pool(enum pt_level level);

/*
 * For accounting, while nobody works in any mapping: the mapping of an address, or NULL; all mappings by address, from NULL to NULL; and
 * each entry that maps a page, in whatever mapping or none.
 */
struct huge_map *huge_map_at(virt_t addr);
struct huge_map *huge_map_next(const struct huge_map *after);
typedef void huge_leaf_fn(void *arg, pte_t *entry, virt_t virt, enum pt_level level);
void huge_visit(huge_leaf_fn *leaf, void *arg);

/* The entry as it is once nobody has it claimed. */
pte_t huge_settled(const pte_t *entry);

/* Counters; see struct huge_usage. */
extern struct huge_usage huge_counts;

static inline u64 huge_page_bytes(const struct huge_map *map)
{
	return pt_level_size(map->level);
}
