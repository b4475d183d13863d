/*
 * Arenas: private machines for tests of mm/, over memory borrowed from the running one.
 *
 *   the machine   [...|###### borrowed: one free run of blocks #####|...]     (nothing)
 *   the arena         [META|  node 0    |META|  node 1  |hole| ...  ]  ..  [ phantom RAM, last ]
 *
 * An arena is a whole struct mm with its own zones, lists, metadata memory and block table, in a
 * vmemmap window of its own. A case may do anything to it and cannot disturb the machine. The
 * machine counts the borrowed memory as "in transit".
 *
 * Phantom RAM lies above all real memory. The code in mm/ never touches the contents of a free or
 * huge block, only its struct pages. Those come from metadata memory, which grows only on a node's
 * own memory. Gigabytes can therefore be split, merged and converted on a machine of 64 MiB. A case
 * must not clear or write phantom pages, or open phantom sections mapped.
 *
 * Nothing has to be freed before an arena is returned: the window is emptied, every CPU flushes,
 * and the run goes back. The two upper levels of a window's page tables belong to the machine and
 * are kept for the next arena (leaks_keep()).
 *
 * An arena lives until its case ends. after_case.c then returns it, as arena_return() does.
 */
#pragma once

#include "kernel/core/percpu.h"
#include "kernel/lib/cpumask.h"
#include "tests/kernel/test.h"
#include "mm/hugetlb/pool.h"
#include "mm/hvo/hvo.h"
#include "mm/memmap/zone.h"

enum { ARENA_NODES_MAX = 4, ARENA_RANGES_MAX = 4 };

/* Part of an arena's real memory, in bytes from its start. */
struct arena_range {
	u64 start, bytes;
};

struct arena_options {
	u64 bytes; /* real memory: a power of two, at least 2 MiB, aligned to its size */
	/*
	 * number of nodes that share the real memory evenly; 0 means 1. Each begins with its
	 * metadata block
	 */
	node_t nodes;
	u64 skew; /* node borders lie this much higher than even shares */
	/*
	 * the last `again` bytes belong to the first node: two nodes A and B form the stretches A,
	 * B, A
	 */
	u64 again;
	/* Metadata blocks of nodes other than the first lie this much above the node's start */
	u64 meta_at;
	u64 short_by; /* RAM ends this much before the end of the borrowed run */
	/* bytes of RAM that does not exist, in whole GiB, above all memory; its node is the last */
	u64 phantom;
	unsigned (*distance)(node_t from, node_t to); /* NULL: all nodes are equally far */
	/* number of nodes that share the phantom evenly; 0 means 1 if there is a phantom */
	node_t phantom_nodes;
	u64 phantom_skew; /* borders of the phantom's nodes lie this much higher */
	struct arena_range hole[ARENA_RANGES_MAX];     /* no RAM */
	struct arena_range firmware[ARENA_RANGES_MAX]; /* kept out of use by firmware */
	struct arena_range boot[ARENA_RANGES_MAX];     /* allocated from memblock */
	struct arena_range bad[ARENA_RANGES_MAX];      /* bad, as with badram= */
};

struct arena {
	struct mm mm;
	struct pool pool; /* an empty pool over mm, of 2 MiB pages */
	struct pool giga; /* and one of 1 GiB pages */
	phys_t start;     /* of the real memory */
	phys_t phantom;   /* of the phantom */

	/* The other fields belong to arena.c. */
	struct arena_options options;
	bool taken;
	virt_t window;
	struct zone *lender;
	u32 run;
	unsigned run_order;
	struct page *pages; /* pages of the machine, chained through private[0] */
	struct memblock_list memory, reserved;
	struct memblock_range ranges[2][32];
	struct pool_node pool_nodes[2][ARENA_NODES_MAX * 2];
	phys_t meta[ARENA_NODES_MAX * 2];
};

/*
 * Borrow memory and build an arena. Returns NULL if the machine cannot. The case is then marked as
 * skipped already, with the reason, and should return.
 *
 *	struct arena *a = arena_borrow(MIB(128), .nodes = 2);
 */
#define arena_borrow(...) arena_borrow_with(&(const struct arena_options){.bytes = __VA_ARGS__})
struct arena *arena_borrow_with(const struct arena_options *options);

/*
 * An arena of the size that most cases need. arena_for_cpus() returns NULL, which skips the case,
 * if fewer CPUs are online.
 */
#define arena_usual()        arena_borrow(MIB(16), .phantom = GIB(1))
#define arena_for_cpus(cpus) (cpus_needed(cpus) ? arena_usual() : NULL)

/* The mode that works in every arena. */
static inline const struct hvo_mode *hvo_on(void)
{
	return &hvo_modes[HVO_ON];
}

/*
 * A case in an arena `a`, which the expression borrows. A machine that cannot lend it skips the
 * case.
 *
 *	TEST_ARENA(mm_buddy, a_page_is_found, arena_borrow(MIB(16), .nodes = 2))
 *	{
 *		EXPECT(mm_page_alloc(&a->mm, 0, USE_MOVABLE, 0, NODE_NONE));
 *	}
 */
#define TEST_ARENA(s, n, ...)                                                                      \
	static void test_##s##_##n##_in(struct arena *a);                                          \
	TEST(s, n)                                                                                 \
	{                                                                                          \
		struct arena *a = __VA_ARGS__;                                                     \
                                                                                                   \
		if (a)                                                                             \
			test_##s##_##n##_in(a);                                                    \
	}                                                                                          \
	static void test_##s##_##n##_in(struct arena *a)

/*
 * Tear the arena down and give everything back, for a case that needs several arenas one after the
 * other. No CPU may be using it. Every frame must have one owner, and each pool must be consistent,
 * or the case fails. A case that failed before may have ended early, so this is not checked then.
 */
void arena_return(struct arena *a);

/* For a case that damages an arena so that it cannot be accounted for. */
void arena_drop(struct arena *a);

/* Does every frame of the arena have one owner, by counters and by walking (mm/debug/account.h)? */
bool arena_accounted(struct arena *a);

/* The arena's usage by its counters. */
struct mm_usage arena_usage(struct arena *a);

/* Frames that could be given out: free, unopened, or on per-CPU lists. */
u64 arena_available(struct arena *a);

/* Free frames in the classes that are shown to the host (mm/zone/report.h). */
u64 arena_showable(const struct arena *a);

/* Changes of blocks between two states that CPUs other than this one have made. */
u64 arena_changes_by_others(const struct arena *a, enum block_state from, enum block_state to);

/* Real memory for the struct pages of so much phantom, and room for metadata memory to grow. */
u64 arena_bytes_for(u64 phantom);

/*
 * Do the small lists contain whole blocks only, so that nothing below 2 MiB is held? (A block that
 * two CPUs split at once for one page may stay there as two halves of order 8.)
 */
bool arena_small_lists_whole(struct arena *a);

/* The block, and the GiB, of a page's first frame. */
static inline u32 block_of_page(const struct page *page)
{
	return (u32)(page_to_pfn(page) >> BLOCK_ORDER);
}

static inline u64 gib_of_page(const struct page *page)
{
	return page_to_pfn(page) >> GIGA_ORDER;
}

/* Zone of the real memory of `node`; zone of the phantom, on its first node. */
struct zone *arena_zone(struct arena *a, node_t node);
struct zone *arena_phantom_zone(struct arena *a);

/* First block of the real memory, and first block of the phantom. */
u32 arena_block(const struct arena *a);
u32 arena_phantom_block(const struct arena *a);

/* Open every section of the arena on demand. */
void arena_open_all(struct arena *a);

/* Return all arenas, at the end of a case. */
void arenas_end_case(void);

/*
 * The next place to fail in a sweep over all places. In the hosted runner with few CPUs it is the
 * next one. Where that would take minutes (in emulation, with many CPUs, under the thread
 * sanitizer), the steps grow.
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
