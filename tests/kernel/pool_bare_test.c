/*
 * Bare pages of pools: they are pages in every count, nobody else gets their memory or the frames
 * for their heads, they get their struct pages when they are taken, and they go back bare. The
 * cases use phantom GiB, whose heads lie in real metadata memory.
 */
#include "kernel/run/test.h"
#include "mm/contig/bad_frames.h"
#include "mm/contig/contig.h"
#include "mm/debug/account.h"
#include "mm/hugetlb/pool_boot.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/meta.h"
#include "mm/zone/section.h"
#include "mm/zone/section_close.h"
#include "mm/zone/transit.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/pool_check.h"
#include "tests/kernel/modes.h"

#ifdef ASHLAR_HOSTED
enum { TRIALS = 4 };
#else
enum { TRIALS = 1 }; /* on many machines */
#endif

static const struct hvo_mode *on(void)
{
	return &hvo_modes[HVO_ON];
}

static u64 bare_pages(const struct pool *pool, node_t node)
{
	u64 bare = 0;

	block_list_foreach(pool->mm, index, &pool->node[node].free)
		bare += block_look_at(pool->mm, index).state == BLOCK_BARE;
	return bare;
}

static u64 add_bare(struct pool *pool, node_t node, u64 count)
{
	return pool_grow_on(pool, &hvo_leave_bare, node, count);
}

/* An arena with `gibs` phantom GiB and as many bare pages; NULL if the case was skipped. */
static struct arena *bare_arena(u64 gibs, u64 pages)
{
	struct arena *a = arena_borrow(MIB(32), .phantom = gibs * GIB(1));

	if (!a)
		return NULL;
	EXPECT_EQ(add_bare(&a->pool, 1, pages), pages);
	EXPECT_EQ(bare_pages(&a->pool, 1), pages);
	return a;
}

static void expect_sound(struct arena *a)
{
	pool_expect_consistent(&a->pool);
	EXPECT(arena_accounted(a));
}

TEST(mm_bare, a_bare_page_is_a_page_without_struct_pages)
{
	enum { PAGES = 700 };
	struct arena *a = bare_arena(2, PAGES);
	u64 made;
	u32 index;

	if (!a)
		return;
	made = block_changes(&a->mm, BLOCK_BARE, BLOCK_HUGE);
	EXPECT_EQ(a->pool.pages, PAGES);
	EXPECT_EQ(a->pool.free, PAGES);
	EXPECT_EQ(a->pool.in_use, 0);
	EXPECT_EQ(arena_usage(a).pool_free, (u64)PAGES * BLOCK_FRAMES);
	EXPECT_EQ(made, 0);
	EXPECT(pool_frames_saved(&a->pool) > (s64)(PAGES * (MEMMAP_FRAMES_PER_BLOCK - 1)));
	expect_sound(a);
	index = a->pool.node[1].free.head;
	EXPECT(block_look_at(&a->mm, index).flags & BLOCK_POOL_FREE);
	EXPECT_EQ(section_close(&a->mm, index / SECTION_BLOCKS), -EBUSY);
	expect_sound(a);
	arena_return(a);
}

TEST(mm_bare, a_page_is_made_when_it_is_taken_and_pages_given_back_come_first)
{
	struct arena *a = bare_arena(1, 100);
	struct page *page, *second;

	if (!a)
		return;
	page = pool_page_take(&a->pool, NODE_NONE, POOL_ANY);
	REQUIRE(page);
	EXPECT_EQ(bare_pages(&a->pool, 1), 99);
	EXPECT_EQ(a->pool.in_use, 1);
	EXPECT(huge_tails_right(&a->mm, (u32)(page_to_pfn(page) >> BLOCK_ORDER), BLOCK_ORDER, 1));
	expect_sound(a);
	pool_page_give(&a->pool, page);
	for (unsigned i = 0; i < 5; i++) {
		second = pool_page_take(&a->pool, NODE_NONE, POOL_ANY);
		EXPECT_EQ(second, page);
		pool_page_give(&a->pool, second);
	}
	EXPECT_EQ(block_changes(&a->mm, BLOCK_BARE, BLOCK_HUGE), 1);
	expect_sound(a);
	arena_return(a);
}

TEST(mm_bare, shrinking_makes_nothing_and_the_memory_is_free)
{
	struct arena *a = bare_arena(2, 600);
	struct zone *zone = a ? arena_phantom_zone(a) : NULL;
	u64 free;

	if (!a)
		return;
	free = zone->free_class[FREE_BARE];
	EXPECT_EQ(pool_shrink(&a->pool, on(), 511), 511);
	EXPECT_EQ(zone->free_class[FREE_BARE], free + 511 * BLOCK_FRAMES);
	EXPECT_EQ(block_changes(&a->mm, BLOCK_BARE, BLOCK_HUGE), 0);
	expect_sound(a);
	EXPECT_EQ(pool_shrink(&a->pool, on(), 100000), 89);
	EXPECT_EQ(a->pool.pages, 0);
	EXPECT_EQ(a->mm.node[0].meta.reserved[META_HEADS], 0);
	sections_close_all(&a->mm);
	EXPECT_EQ(zone->unopened, 2 * order_pages(GIGA_ORDER));
	expect_sound(a);
	arena_return(a);
}

TEST(mm_bare, promised_pages_may_be_bare_and_stay)
{
	enum { PAGES = 600, PROMISED = 300 };
	struct arena *a = bare_arena(2, PAGES);

	if (!a)
		return;
	EXPECT_EQ(pool_reserve(&a->pool, PROMISED), 0);
	EXPECT_EQ(pool_reserve(&a->pool, PAGES), -ENOMEM);
	EXPECT_EQ(pool_shrink(&a->pool, on(), 100000), PAGES - PROMISED);
	EXPECT_EQ(pool_page_take(&a->pool, NODE_NONE, POOL_ANY), NULL);
	for (unsigned i = 0; i < PROMISED; i++)
		REQUIRE(pool_page_take(&a->pool, NODE_NONE, POOL_RESERVED));
	EXPECT_EQ(a->pool.pages, PROMISED);
	EXPECT_EQ(a->pool.free, 0);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* Everything else is used up, metadata memory too; each page can be taken. */
TEST(mm_bare, no_other_user_gets_the_memory_or_the_heads)
{
	enum { PAGES = 1000 };
	struct arena *a = bare_arena(3, PAGES);
	struct famine famine;
	u64 taken = 0;

	if (!a)
		return;
	EXPECT_EQ(a->mm.node[0].meta.reserved[META_HEADS], PAGES);
	famine_begin(&famine, a, META_LASTING, 0);
	EXPECT_EQ(meta_reserve(&a->mm.node[0], META_HEADS, 1), -ENOMEM);
	while (pool_page_take(&a->pool, NODE_NONE, POOL_ANY))
		taken++;
	EXPECT_EQ(taken, PAGES);
	EXPECT_EQ(a->pool.pages, PAGES);
	famine_end(&famine);
	expect_sound(a);
	arena_return(a);
}

TEST(mm_bare, without_frames_for_heads_no_page_stays_bare)
{
	struct arena *a = arena_borrow(MIB(32), .phantom = GIB(1));

	if (!a)
		return;
	fail_arm(&a->mm.fail, FAIL_META, 1, FAIL_AGAIN);
	EXPECT_EQ(add_bare(&a->pool, 1, 100), 0);
	fail_disarm(&a->mm.fail);
	expect_sound(a);
	EXPECT_EQ(add_bare(&a->pool, 1, 100), 100);
	expect_sound(a);
	arena_return(a);
}

TEST(mm_bare, surplus_that_is_bare_goes_with_its_promise)
{
	enum { PAGES = 600 };
	struct arena *a = bare_arena(2, PAGES);

	if (!a)
		return;
	EXPECT_EQ(pool_reserve(&a->pool, PAGES), 0);
	EXPECT_EQ(pool_resize(&a->pool, on(), 7), 7);
	EXPECT_EQ(a->pool.surplus, PAGES - 7);
	EXPECT_EQ(bare_pages(&a->pool, 1), PAGES);
	pool_unreserve(&a->pool, PAGES);
	EXPECT_EQ(a->pool.pages, 7);
	EXPECT_EQ(a->pool.surplus, 0);
	EXPECT_EQ(block_changes(&a->mm, BLOCK_BARE, BLOCK_HUGE), 0);
	expect_sound(a);
	arena_return(a);
}

/* ---- pages of 1 GiB ---- */

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

TEST(mm_bare, a_page_of_1g_is_made_or_demoted_when_it_is_wanted)
{
	static struct both b;
	struct page *page;

	if (!borrow_both(&b, 3))
		return;
	EXPECT_EQ(add_bare(&b.giga, NODE_NONE, 5), 3);
	EXPECT_EQ(bare_pages(&b.giga, 1), 3);
	EXPECT(arena_accounted_with(b.a, &b.giga));
	page = pool_page_take(&b.giga, NODE_NONE, POOL_ANY);
	REQUIRE(page);
	EXPECT(huge_tails_right(&b.a->mm, (u32)(page_to_pfn(page) >> BLOCK_ORDER), GIGA_ORDER, 97));
	EXPECT_EQ(bare_pages(&b.giga, 1), 2);
	EXPECT(arena_accounted_with(b.a, &b.giga));
	EXPECT_EQ(pool_demote(&b.giga, &b.a->pool, on(), 1), 1);
	EXPECT_EQ(b.a->pool.pages, GIB_BLOCKS);
	EXPECT_EQ(bare_pages(&b.giga, 1), 1);
	EXPECT(arena_accounted_with(b.a, &b.giga));
	EXPECT_EQ(pool_shrink(&b.giga, on(), 1), 1);
	EXPECT_EQ(b.giga.pages, 1);
	EXPECT(arena_accounted_with(b.a, &b.giga));
	pool_page_give(&b.giga, page);
	arena_return(b.a);
}

/* ---- nodes ---- */

TEST(mm_bare, nodes_share_and_the_nearest_gives)
{
	struct arena *a = arena_borrow(MIB(64), .phantom = GIB(4), .phantom_nodes = 2);
	struct page *page;

	if (!a)
		return;
	EXPECT_EQ(add_bare(&a->pool, NODE_NONE, 6), 6);
	for (node_t n = 0; n < 3; n++)
		EXPECT_EQ(bare_pages(&a->pool, n), 2);
	EXPECT_EQ(add_bare(&a->pool, 2, 498), 498);
	EXPECT_EQ(add_bare(&a->pool, 7, 1), 0);
	expect_sound(a);
	page = pool_page_take(&a->pool, 1, POOL_ANY);
	REQUIRE(page);
	EXPECT_EQ(block_zone(&a->mm, (u32)(page_to_pfn(page) >> BLOCK_ORDER))->node, 1);
	pool_page_give(&a->pool, page);
	/* node 1 has a made page now, and still node 2 gives its own */
	page = pool_page_take(&a->pool, 2, POOL_ANY);
	REQUIRE(page);
	EXPECT_EQ(block_zone(&a->mm, (u32)(page_to_pfn(page) >> BLOCK_ORDER))->node, 2);
	pool_page_give(&a->pool, page);
	EXPECT_EQ(pool_shrink_on(&a->pool, on(), 2, 10000), 500);
	expect_sound(a);
	arena_return(a);
}

/* ---- many CPUs ---- */

struct takers {
	struct pool *pool;
	enum pool_take how;
	u64 taken, each;
	u32 next, refused;
};

static void take_many(void *arg)
{
	struct takers *takers = arg;

	for (u64 i = 0; i < takers->each; i++) {
		struct page *page = pool_page_take(takers->pool, NODE_NONE, takers->how);

		if (!page) {
			atomic_fetch_add(&takers->refused, 1);
			return;
		}
		/* one reference, so nobody else has taken it */
		EXPECT_EQ(atomic_load_relaxed(&page->refcount), 1);
		atomic_fetch_add(&takers->taken, 1);
	}
}

TEST(mm_bare, many_cpus_get_each_page_once)
{
	enum { PAGES = 1400 };
	struct arena *a = bare_arena(3, PAGES);
	struct takers takers = {.how = POOL_ANY, .each = PAGES};

	if (!a)
		return;
	takers.pool = &a->pool;
	cpus_run_together(take_many, &takers);
	EXPECT_EQ(takers.taken, PAGES);
	EXPECT_EQ(a->pool.in_use, PAGES);
	EXPECT_EQ(a->pool.free, 0);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* Promised pages are there for all who take them, while others are being made. */
TEST(mm_bare, promised_pages_are_not_refused_while_others_are_made)
{
	static struct both b;

	for (unsigned trial = 0; trial < TRIALS && !test_failed(); trial++) {
		struct takers takers = {.pool = &b.giga, .how = POOL_RESERVED, .each = 1};
		const u64 cpus = cpumask_weight(&cpus_online);

		if (!borrow_both(&b, cpus))
			return;
		EXPECT_EQ(add_bare(&b.giga, NODE_NONE, cpus), cpus);
		EXPECT_EQ(pool_reserve(&b.giga, cpus), 0);
		cpus_run_together(take_many, &takers);
		EXPECT_EQ(takers.refused, 0);
		arena_return(b.a);
	}
}

struct changers {
	struct arena *a;
	u32 next;
};

/* One CPU takes and gives, one shrinks and adds bare pages, the others open and close sections. */
static void change_all(void *arg)
{
	struct changers *c = arg;
	struct pool *pool = &c->a->pool;
	const u32 me = atomic_fetch_add(&c->next, 1);

	for (unsigned i = 0; i < 20; i++) {
		struct page *page;

		if (me == 0) {
			page = pool_page_take(pool, NODE_NONE, POOL_ANY);
			if (page)
				pool_page_give(pool, page);
		} else if (me == 1) {
			pool_shrink(pool, on(), 500 + i);
			add_bare(pool, NODE_NONE, 900);
		} else {
			section_open_next(arena_phantom_zone(c->a), SECTION_ON_DEMAND);
			section_close(&c->a->mm,
				      (arena_phantom_block(c->a) + i * 37) / SECTION_BLOCKS);
		}
	}
}

TEST(mm_bare, cpus_that_add_take_and_shrink_at_once_lose_nothing)
{
	struct changers c = {.a = bare_arena(4, 1200)};

	if (!c.a)
		return;
	cpus_run_together(change_all, &c);
	expect_sound(c.a);
	arena_return(c.a);
}

/* ---- others that want the memory itself ---- */

TEST(mm_bare, a_bare_page_makes_room_for_a_range_and_leaves_a_bad_frame)
{
	struct arena *a = bare_arena(2, 300);
	const u32 index = a ? a->pool.node[1].free.head : 0;

	if (!a)
		return;
	EXPECT_EQ(mm_contig_alloc_range(&a->mm, block_pfn(index), BLOCK_FRAMES), 0);
	EXPECT_EQ(a->pool.pages, 300);
	EXPECT(arena_accounted(a));
	mm_contig_free_range(&a->mm, block_pfn(index), BLOCK_FRAMES);
	EXPECT_EQ(mm_mark_bad(&a->mm, block_pfn(a->pool.node[1].free.head) + 5), 0);
	EXPECT_EQ(a->pool.pages, 300);
	expect_sound(a);
	arena_return(a);
}

/* ---- at boot ---- */

TEST(mm_bare, pages_at_boot_stay_bare_if_asked_for)
{
	struct arena *a = arena_borrow(MIB(32), .phantom = GIB(3));
	struct pool_boot_request request = {
		.bare = true, .nodes = 1, .on = {{.node = 1, .count = 1000}}};

	if (!a)
		return;
	EXPECT_EQ(pool_boot_make(&request, &a->pool, on()), 1000);
	EXPECT_EQ(a->pool.boot, 1000);
	EXPECT_EQ(a->pool.boot_bare, 1000);
	EXPECT_EQ(a->pool.free, 1000);
	expect_sound(a);
	arena_return(a);
}
