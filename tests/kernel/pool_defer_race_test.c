/*
 * Deferred pages against everything that wants their frames, their memory or their counts at the
 * same time. See pool_defer_test.c.
 */
#include "mm/hugetlb/pool_defer.h"

#include "kernel/run/test.h"
#include "mm/contig/contig.h"
#include "mm/debug/account.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/hvo/hvo_take.h"
#include "mm/memmap/meta.h"
#include "mm/zone/isolate.h"
#include "mm/zone/section.h"
#include "mm/zone/transit.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/pool_check.h"

#ifdef ASHLAR_HOSTED
enum { TRIALS = 20 };
#else
enum { TRIALS = 4 }; /* on many machines */
#endif
enum { GIB_PAGES = GIB_BLOCKS - 2 };

static const struct hvo_mode *on(void)
{
	return &hvo_modes[HVO_ON];
}

/* An arena with phantom GiB and a pool of 1 GiB pages beside its own. */
struct both {
	struct arena *a;
	struct pool giga;
	struct pool_node nodes[ARENA_NODES_MAX * 2];
};

static bool borrow_both(struct both *b, u64 gibs)
{
	b->a = arena_borrow(MIB(32), .phantom = gibs * GIB(1));
	if (b->a)
		pool_init(&b->giga, &b->a->mm, GIGA_ORDER, b->nodes);
	return b->a != NULL;
}

/* ---- promised pages ---- */

struct takers {
	struct pool *pool;
	struct node *node; /* the thief's */
	struct arena *a;
	u64 each, stolen;
	u32 next, taken, refused, done;
};

static void take_promised(struct takers *takers)
{
	for (u64 i = 0; i < takers->each; i++) {
		struct page *page = pool_page_take(takers->pool, NODE_NONE, POOL_RESERVED);

		atomic_fetch_add(page ? &takers->taken : &takers->refused, 1);
	}
}

static void take_together(void *arg)
{
	take_promised(arg);
}

/* Promised pages are there for all who take them, also at the moment a GiB is done. */
TEST(mm_defer, promised_pages_are_not_refused_while_others_are_made)
{
	static struct both b;

	for (unsigned trial = 0; trial < TRIALS && !test_failed(); trial++) {
		struct takers takers = {.pool = &b.giga, .each = 2};

		if (!borrow_both(&b, 8))
			return;
		EXPECT_EQ(pool_defer(&b.giga, NODE_NONE, 8), 8);
		EXPECT_EQ(pool_reserve(&b.giga, 8), 0);
		cpus_run_together(take_together, &takers);
		EXPECT_EQ(takers.refused, 0);
		arena_return(b.a);
	}
}

/* One CPU takes a page, and so makes all there are; the others promise some of them meanwhile. */
static void promise_or_take(void *arg)
{
	struct takers *t = arg;

	if (atomic_fetch_add(&t->next, 1) == 0) {
		atomic_fetch_add(
			pool_page_take(t->pool, NODE_NONE, POOL_ANY) ? &t->taken : &t->refused, 1);
		return;
	}
	for (u64 i = 0; i < t->each; i++) {
		if (pool_reserve(t->pool, 5) == 0)
			pool_unreserve(t->pool, 5);
		else
			atomic_fetch_add(&t->refused, 1);
	}
}

TEST(mm_defer, pages_that_are_being_made_can_be_promised)
{
	for (unsigned trial = 0; trial < TRIALS && !test_failed(); trial++) {
		struct arena *a = arena_borrow(MIB(32), .phantom = GIB(1));
		struct takers t = {.each = 50};

		if (!a)
			return;
		t.pool = &a->pool;
		EXPECT_EQ(pool_defer(&a->pool, 1, GIB_PAGES), GIB_PAGES);
		cpus_run_together(promise_or_take, &t);
		EXPECT_EQ(t.refused, 0);
		EXPECT(arena_accounted(a));
		arena_return(a);
	}
}

/* The first CPU takes whatever metadata memory has to give, the second takes pages. */
static void steal_or_take(void *arg)
{
	struct takers *t = arg;

	switch (atomic_fetch_add(&t->next, 1)) {
	case 0:
		while (!atomic_load_acquire(&t->done))
			t->stolen += meta_reserve_now(t->node, META_LASTING, 1) == 0;
		break;
	case 1:
		take_promised(t);
		atomic_store_release(&t->done, 1);
		break;
	default:
		break;
	}
}

/* Nobody else gets the frames for a GiB's tables and heads, before or while it is opened. */
TEST(mm_defer, frames_of_a_gib_can_not_be_had_by_others)
{
	struct arena *a;
	struct takers t = {.each = 2 * GIB_PAGES};

	if (cpus_find_other() == CPU_NONE)
		SKIP("needs two CPUs");
	a = arena_borrow(MIB(32), .phantom = GIB(2));
	if (!a)
		return;
	t.pool = &a->pool;
	t.node = &a->mm.node[0];
	EXPECT_EQ(pool_defer(&a->pool, 1, t.each), t.each);
	EXPECT_EQ(pool_reserve(&a->pool, t.each), 0);
	while (meta_reserve(t.node, META_LASTING, 1) == 0)
		t.stolen++;
	cpus_run_together(steal_or_take, &t);
	EXPECT_EQ(t.refused, 0);
	EXPECT_EQ(a->pool.pages, 2 * GIB_PAGES);
	meta_unreserve(t.node, META_LASTING, t.stolen);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* The same where the heads lie in the GiB itself, on the machine. */
TEST(mm_defer, frames_in_a_gib_can_not_be_had_by_others)
{
	const u64 pages = pool_2m.pages;
	struct takers t = {.pool = &pool_2m, .node = &mm_kernel.node[0], .each = 1};
	struct page *page;

	if (cpus_find_other() == CPU_NONE)
		SKIP("needs two CPUs");
	if (!pool_may_spoil_a_gib() || pool_2m.free > 0 || pool_defer(&pool_2m, 0, GIB_PAGES) == 0)
		SKIP("needs a GiB that was never opened");
	EXPECT_EQ(pool_reserve(&pool_2m, 2), 0);
	while (meta_reserve_now(t.node, META_LASTING, 1) == 0)
		t.stolen++;
	cpus_run_together(steal_or_take, &t);
	EXPECT_EQ(t.refused, 0);
	EXPECT_EQ(pool_2m.pages, pages + GIB_PAGES);
	meta_unreserve(t.node, META_LASTING, t.stolen);
	page = block_page(&mm_kernel, pool_2m.node[0].free.head);
	EXPECT(page->flags & PAGE_HUGETLB);
	pool_unreserve(&pool_2m, 1);
	/* give back the one that was taken: the only block of the GiB that is not on the list */
	for (u32 index = pool_2m.node[0].free.head & ~(GIB_BLOCKS - 1), n = 0; n < GIB_BLOCKS;
	     n++) {
		const struct block_word word = block_look_at(&mm_kernel, index + n);

		if ((word.flags & BLOCK_POOL) && !(word.flags & BLOCK_POOL_FREE))
			pool_page_give(&pool_2m, block_page(&mm_kernel, index + n));
	}
	EXPECT_EQ(pool_resize(&pool_2m, on(), pages), pages);
	EXPECT(account_machine());
}

/* Take all frames of kind LASTING, and give every second one back. Returns how many were taken. */
static u64 scatter(struct node *node, pfn_t *held, u64 most)
{
	u64 count = 0;

	while (count < most && meta_reserve(node, META_LASTING, 1) == 0)
		held[count++] = meta_take(node, META_LASTING);
	while (count < most && meta_reserve_emergency(node, 1) == 0)
		held[count++] = meta_take(node, META_LASTING);
	for (u64 i = 0; i < count; i += 2)
		meta_give(node->mm, held[i], 0);
	return count;
}

/* A GiB's block records need frames in a row. If there are none, it is not deferred. */
TEST(mm_defer, no_gib_is_deferred_that_can_not_be_opened)
{
	struct arena *a = arena_borrow(MIB(32), .phantom = GIB(2));
	static pfn_t held[16 * BLOCK_FRAMES];
	struct node *node;
	u64 count;

	if (!a)
		return;
	node = &a->mm.node[0];
	count = scatter(node, held, ARRAY_LEN(held));
	EXPECT_EQ(pool_defer(&a->pool, 1, 2 * GIB_PAGES), 0);
	EXPECT_EQ(arena_phantom_zone(a)->deferred, 0);
	EXPECT_EQ(node->meta.reserved[META_LASTING], 0);
	for (u64 i = 1; i < count; i += 2)
		meta_give(&a->mm, held[i], 0);
	EXPECT_EQ(pool_defer(&a->pool, 1, 2 * GIB_PAGES), 2 * GIB_PAGES);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* There are four frames in a row, for the records of one GiB, and nowhere eight. */
TEST(mm_defer, one_gib_is_deferred_where_there_are_frames_for_one)
{
	struct arena *a = arena_borrow(MIB(32), .phantom = GIB(2));
	static pfn_t held[16 * BLOCK_FRAMES];
	struct node *node;
	u64 count, at = 0;

	if (!a)
		return;
	node = &a->mm.node[0];
	count = scatter(node, held, ARRAY_LEN(held));
	while (at + 4 < count && held[at + 4] != held[at] + 4)
		at += 2;
	EXPECT(at + 4 < count);
	meta_give(&a->mm, held[at + 1], 0);
	meta_give(&a->mm, held[at + 3], 0);
	EXPECT_EQ(pool_defer(&a->pool, 1, 2 * GIB_PAGES), GIB_PAGES);
	EXPECT_EQ(arena_phantom_zone(a)->deferred, order_pages(GIGA_ORDER));
	for (u64 i = 1; i < count; i += 2)
		if (i != at + 1 && i != at + 3)
			meta_give(&a->mm, held[i], 0);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* ---- ranges ---- */

/* One CPU takes a 1 GiB page, another wants some blocks of the same GiB, as contig does. */
static void want_range_or_take(void *arg)
{
	struct takers *t = arg;
	struct isolation token = {0};
	const u32 first = arena_phantom_block(t->a);

	switch (atomic_fetch_add(&t->next, 1)) {
	case 0:
		take_promised(t);
		break;
	case 1:
		if (section_open_range(&t->a->mm, first, 8, SECTION_ON_DEMAND) == 0 &&
		    isolate_range(arena_phantom_zone(t->a), first, 8, &token) == 0)
			isolate_undo(arena_phantom_zone(t->a), &token);
		break;
	default:
		break;
	}
}

TEST(mm_defer, a_range_that_is_wanted_meanwhile_breaks_no_1g_page)
{
	static struct both b;

	if (cpus_find_other() == CPU_NONE)
		SKIP("needs two CPUs");
	for (unsigned trial = 0; trial < TRIALS && !test_failed(); trial++) {
		struct takers t = {.pool = &b.giga, .each = 1};

		if (!borrow_both(&b, 1))
			return;
		t.a = b.a;
		EXPECT_EQ(pool_defer(&b.giga, NODE_NONE, 1), 1);
		EXPECT_EQ(pool_reserve(&b.giga, 1), 0);
		cpus_run_together(want_range_or_take, &t);
		EXPECT_EQ(t.refused, 0);
		EXPECT(arena_accounted_with(b.a, &b.giga));
		arena_return(b.a);
	}
}

TEST(mm_defer, a_wanted_range_becomes_small_pages_where_there_are_both)
{
	static struct both b;

	if (!borrow_both(&b, 2))
		return;
	EXPECT_EQ(pool_defer(&b.a->pool, NODE_NONE, GIB_PAGES), GIB_PAGES);
	EXPECT_EQ(pool_defer(&b.giga, NODE_NONE, 1), 1);
	EXPECT_EQ(mm_contig_alloc_range(&b.a->mm, block_pfn(arena_phantom_block(b.a) + 8),
					BLOCK_FRAMES),
		  0);
	EXPECT_EQ(b.giga.node[1].deferred, 1);
	EXPECT(arena_accounted_with(b.a, &b.giga));
	arena_return(b.a);
}

/* ---- nodes ---- */

/* The second node's two GiB lie between those of the first. */
TEST(mm_defer, nodes_that_interleave_open_gib_of_their_own)
{
	struct arena *a = arena_borrow(MIB(32), .phantom = GIB(4), .phantom_nodes = 2);
	struct memblock_range *range;
	struct zone *outer, *inner;
	struct page *page = NULL;

	if (!a)
		return;
	range = &a->memory.range[a->memory.count++ - 2];
	outer = arena_phantom_zone(a);
	inner = node_zone(&a->mm.node[2], ZONE_NORMAL);
	range[0].end = a->phantom + GIB(1);
	range[1].start = a->phantom + GIB(1);
	range[1].end = a->phantom + GIB(3);
	range[2] = (struct memblock_range){
		.start = a->phantom + GIB(3), .end = a->phantom + GIB(4), .node = 1};
	outer->end_pfn = range[2].end >> PAGE_SHIFT;
	inner->start_pfn = range[1].start >> PAGE_SHIFT;
	inner->end_pfn = range[1].end >> PAGE_SHIFT;
	EXPECT_EQ(pool_defer(&a->pool, NODE_NONE, 4 * GIB_PAGES), 4 * GIB_PAGES);
	for (unsigned i = 0; i < GIB_PAGES + 1; i++)
		page = pool_page_take(&a->pool, 1, POOL_ANY);
	REQUIRE(page);
	EXPECT_EQ((page_to_pfn(page) << PAGE_SHIFT) / GIB(1), range[2].start / GIB(1));
	EXPECT(arena_accounted(a));
	for (unsigned i = 0; i < 2 * GIB_PAGES; i++)
		EXPECT(pool_page_take(&a->pool, 2, POOL_ANY) != NULL);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_defer, what_a_node_lacks_of_its_share_is_deferred_on_others)
{
	struct arena *a = arena_borrow(MIB(32), .phantom = GIB(4), .phantom_nodes = 2);
	static struct pool_node nodes[ARENA_NODES_MAX * 2];
	static struct pool giga;

	if (!a)
		return;
	pool_init(&giga, &a->mm, GIGA_ORDER, nodes);
	EXPECT_EQ(pool_defer(&giga, 1, 1), 1);
	EXPECT_EQ(pool_defer(&giga, NODE_NONE, 3), 3); /* node 1 has one GiB left */
	EXPECT_EQ(giga.node[1].deferred, 2);
	EXPECT_EQ(giga.node[2].deferred, 2);
	EXPECT(arena_accounted_with(a, &giga));
	arena_return(a);
}

/* ---- shrinking ---- */

TEST(mm_defer, shrinking_opens_no_more_than_it_must)
{
	struct arena *a = arena_borrow(MIB(32), .phantom = GIB(4), .phantom_nodes = 2);

	if (!a)
		return;
	EXPECT_EQ(pool_defer(&a->pool, NODE_NONE, 4 * GIB_PAGES), 4 * GIB_PAGES);
	EXPECT_EQ(pool_reserve(&a->pool, 4 * GIB_PAGES), 0);
	EXPECT_EQ(pool_shrink(&a->pool, on(), 1), 0);
	EXPECT_EQ(a->pool.node[1].deferred + a->pool.node[2].deferred, 4 * GIB_PAGES);
	pool_unreserve(&a->pool, 4 * GIB_PAGES);
	for (unsigned i = 1; i <= 3; i++)
		EXPECT_EQ(pool_shrink(&a->pool, on(), 1), 1);
	EXPECT_EQ(a->pool.node[1].deferred + a->pool.node[2].deferred, 2 * GIB_PAGES);
	EXPECT(a->pool.node[1].pages + 1 == a->pool.node[2].pages ||
	       a->pool.node[2].pages + 1 == a->pool.node[1].pages);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_defer, surplus_that_is_deferred_goes_with_its_promise)
{
	struct arena *a = arena_borrow(MIB(32), .phantom = GIB(3));

	if (!a)
		return;
	EXPECT_EQ(pool_defer(&a->pool, 1, 3 * GIB_PAGES), 3 * GIB_PAGES);
	EXPECT_EQ(pool_reserve(&a->pool, 3 * GIB_PAGES), 0);
	EXPECT_EQ(pool_resize(&a->pool, on(), 7), 7);
	EXPECT_EQ(a->pool.surplus, 3 * GIB_PAGES - 7);
	EXPECT_EQ(a->pool.node[1].deferred, 3 * GIB_PAGES);
	pool_unreserve(&a->pool, 3 * GIB_PAGES);
	EXPECT_EQ(a->pool.pages, 7);
	EXPECT_EQ(a->pool.surplus, 0);
	EXPECT_EQ(mm_counted(&a->mm, COUNT_SECTIONS_OPENED), GIB_SECTIONS + 1);
	pool_expect_consistent(&a->pool);
	EXPECT(arena_accounted(a));
	arena_return(a);
}
