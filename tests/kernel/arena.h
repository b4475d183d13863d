/*
 * Arenas: private machines for tests of mm/, over memory borrowed from the running one.
 *
 *   the machine   [...|###### borrowed: one free run of blocks #####|...]     (nothing)
 *   the arena         [META|  node 0    |META|  node 1  |hole| ...  ]  ..  [ phantom RAM, last ]
 *
 * An arena is a whole struct mm: own zones, lists, META and block table, in a vmemmap window of its
 * own, so a case may do anything to it and cannot disturb the machine, whose memory it is counted
 * as "in transit" while it is lent.
 *
 * Phantom RAM lies above all there is. Nothing in mm/ touches the contents of a free or huge block,
 * only its struct pages, which come from META, and META only ever grows on a node's own memory: so
 * gigabytes can be split, merged and converted on a machine of 64 MiB. What must not be done there:
 * clear pages, open sections mapped, write to them.
 *
 * Returning needs nothing to be freed first: the window is emptied, every CPU flushes, and the run
 * goes back. The two upper levels of a window's page tables are the machine's and kept for the next
 * arena (leaks_keep()).
 */
#pragma once

#include "kernel/core/percpu.h"
#include "kernel/lib/cpumask.h"

#include "mm/hugetlb/pool.h"
#include "mm/memmap/zone.h"

enum { ARENA_NODES_MAX = 4, ARENA_RANGES_MAX = 4 };

/* Part of an arena's real memory, in bytes from its start. */
struct arena_range {
	u64 start, bytes;
};

struct arena_options {
	u64 bytes;    /* real memory: a power of two from 2 MiB on, aligned to its size */
	node_t nodes; /* that share it evenly; 0 means 1. Each begins with its META block */
	u64 skew;     /* node borders lie this much higher than even shares */
	/*
	 * the last of these bytes are the first node's again: of two nodes A and B, stretches A, B,
	 * A
	 */
	u64 again;
	/* META blocks of nodes other than the first lie this much above their beginning */
	u64 meta_at;
	u64 short_by; /* RAM ends this much before the borrowed run does */
	/* bytes of RAM that is not there, whole GiB, above all memory; its node is the last */
	u64 phantom;
	unsigned (*distance)(node_t from, node_t to); /* NULL: all nodes are equally far */
	node_t phantom_nodes; /* that share the phantom evenly; 0 means 1 if there is any */
	u64 phantom_skew;     /* as skew */
	struct arena_range hole[ARENA_RANGES_MAX];     /* no RAM */
	struct arena_range firmware[ARENA_RANGES_MAX]; /* kept out of use */
	struct arena_range boot[ARENA_RANGES_MAX];     /* given out by memblock */
	struct arena_range bad[ARENA_RANGES_MAX];      /* as badram= would have it */
};

struct arena {
	struct mm mm;
	struct pool pool; /* empty, over mm */
	phys_t start;     /* of the real memory */
	phys_t phantom;   /* of the phantom */

	/* The rest is arena.c's. */
	struct arena_options options;
	bool taken;
	virt_t window;
	struct zone *lender;
	u32 run;
	unsigned run_order;
	struct page *pages; /* of the machine, chained through private[0] */
	struct memblock_list memory, reserved;
	struct memblock_range ranges[2][32];
	struct pool_node pool_nodes[ARENA_NODES_MAX * 2];
	phys_t meta[ARENA_NODES_MAX * 2];
};

/*
 * Borrow and build. NULL if the machine cannot: then the case is already marked skipped, with the
 * reason, and should return.
 *
 *	struct arena *a = arena_borrow(MIB(128), .nodes = 2);
 */
#define arena_borrow(...) arena_borrow_with(&(const struct arena_options){.bytes = __VA_ARGS__})
struct arena *arena_borrow_with(const struct arena_options *options);

/* Tear down and give everything back. No CPU may be using the arena. */
void arena_return(struct arena *a);

/* Every frame of the arena has one owner, by counters and by walking (mm/debug/account.h). */
bool arena_accounted(struct arena *a);

/* What the arena's counters say. */
struct mm_usage arena_usage(struct arena *a);

/* Frames that could be given out: free, unopened, on per-CPU lists. */
u64 arena_available(struct arena *a);

/*
 * True if what is on the small lists is whole blocks: nothing is held below 2 MiB. (A block split
 * by two CPUs at once for one page may stay there as two halves of order 8.)
 */
bool arena_small_lists_whole(struct arena *a);

/* Zone of the real memory of `node`, or of the phantom (its node, when it has one). */
struct zone *arena_zone(struct arena *a, node_t node);
struct zone *arena_phantom_zone(struct arena *a);

/* First block of the real memory and of the phantom; section of a block. */
u32 arena_block(const struct arena *a);
u32 arena_phantom_block(const struct arena *a);

/* Open every section of the arena on demand. */
void arena_open_all(struct arena *a);

/* Return arenas that were never returned. True if there was one. */
bool arena_return_leftovers(void);

/*
 * Which place fails next in a sweep over all of them. Hosted on few CPUs it is the one after; where
 * that would take minutes, emulated, on many CPUs or under the thread sanitizer, they grow ever
 * fewer.
 */
static inline u32 sweep_next(u32 fault)
{
	const u32 cpus = cpumask_weight(&cpus_online);

#if defined(ASHLAR_HOSTED) && !defined(__SANITIZE_THREAD__)
	if (cpus <= 4)
		return fault + 1;
#endif
	if (cpus > 64)
		return fault + 1 + fault / 2;
	return fault + 1 + (fault > 8 ? fault / 4 : 0);
}
