/*
 * Bare pages of pools: they are pages in every count, nobody else gets their memory or the frames
 * for their heads, they get their struct pages when they are taken, and they go back bare. The
 * cases use phantom GiB, whose heads lie in real metadata memory.
 */
#include "mm/hugetlb/pool_boot.h"
#include "mm/hugetlb/pool_use.h"
#include "tests/kernel/mm_test.h"

#ifdef ASHLAR_HOSTED
enum { TRIALS = 4 };
#else
enum { TRIALS = 1 }; /* on many machines */
#endif

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

TEST_ARENA(mm_bare, a_bare_page_is_a_page_without_struct_pages, bare_arena(2, 700))
{
	const u64 pages = a->pool.pages;
	u32 index;

	pool_expect_counts(&a->pool, pages, 0, 0);
	EXPECT_EQ(arena_usage(a).pool_free, pages * BLOCK_FRAMES);
	EXPECT_EQ(mm_counted(&a->mm, COUNT_CHANGE(BLOCK_BARE, BLOCK_HUGE)), 0);
	EXPECT(pool_frames_saved(&a->pool) > (s64)(pages * (MEMMAP_FRAMES_PER_BLOCK - 1)));
	EXPECT(arena_accounted(a));
	index = a->pool.node[1].free.head;
	EXPECT(block_look_at(&a->mm, index).flags & BLOCK_POOL_FREE);
	EXPECT_EQ(section_close(&a->mm, index / SECTION_BLOCKS), -EBUSY);
}

TEST_ARENA(mm_bare, a_page_is_made_when_it_is_taken_and_pages_given_back_come_first,
	   bare_arena(1, 100))
{
	struct page *page, *second;

	page = pool_page_take(&a->pool, NODE_NONE, POOL_ANY);
	REQUIRE(page);
	EXPECT_EQ(bare_pages(&a->pool, 1), 99);
	EXPECT_EQ(a->pool.in_use, 1);
	EXPECT(huge_tails_right(&a->mm, block_of_page(page), BLOCK_ORDER, 1));
	EXPECT(arena_accounted(a));
	pool_page_give(&a->pool, page);
	for (unsigned i = 0; i < 5; i++) {
		second = pool_page_take(&a->pool, NODE_NONE, POOL_ANY);
		EXPECT_EQ(second, page);
		pool_page_give(&a->pool, second);
	}
	EXPECT_EQ(mm_counted(&a->mm, COUNT_CHANGE(BLOCK_BARE, BLOCK_HUGE)), 1);
}

TEST_ARENA(mm_bare, shrinking_makes_nothing_and_the_memory_is_free, bare_arena(2, 600))
{
	struct zone *zone = arena_phantom_zone(a);
	const u64 free = zone->free_class[FREE_BARE];

	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), 511), 511);
	EXPECT_EQ(zone->free_class[FREE_BARE], free + 511 * BLOCK_FRAMES);
	EXPECT_EQ(mm_counted(&a->mm, COUNT_CHANGE(BLOCK_BARE, BLOCK_HUGE)), 0);
	EXPECT(arena_accounted(a));
	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), 100000), 89);
	EXPECT_EQ(a->pool.pages, 0);
	EXPECT_EQ(a->mm.node[0].meta.reserved[META_HEADS], 0);
	sections_close_all(&a->mm);
	EXPECT_EQ(zone->unopened, 2 * order_pages(GIGA_ORDER));
}

TEST_ARENA(mm_bare, promised_pages_may_be_bare_and_stay, bare_arena(2, 600))
{
	enum { PROMISED = 300 };
	const u64 pages = a->pool.pages;

	EXPECT_EQ(pool_reserve(&a->pool, PROMISED), 0);
	EXPECT_EQ(pool_reserve(&a->pool, pages), -ENOMEM);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), 100000), pages - PROMISED);
	EXPECT_EQ(pool_page_take(&a->pool, NODE_NONE, POOL_ANY), NULL);
	for (unsigned i = 0; i < PROMISED; i++)
		REQUIRE(pool_page_take(&a->pool, NODE_NONE, POOL_RESERVED));
	EXPECT_EQ(a->pool.pages, PROMISED);
	EXPECT_EQ(a->pool.free, 0);
}

/* Everything else is used up, metadata memory too; each page can be taken. */
TEST_ARENA(mm_bare, no_other_user_gets_the_memory_or_the_heads, bare_arena(3, 1000))
{
	const u64 pages = a->pool.pages;
	struct famine famine;
	u64 taken = 0;

	EXPECT_EQ(a->mm.node[0].meta.reserved[META_HEADS], pages);
	famine_begin(&famine, a, META_LASTING, 0);
	EXPECT_EQ(meta_reserve(&a->mm.node[0], META_HEADS, 1), -ENOMEM);
	while (pool_page_take(&a->pool, NODE_NONE, POOL_ANY))
		taken++;
	EXPECT_EQ(taken, pages);
	EXPECT_EQ(a->pool.pages, pages);
	famine_end(&famine);
}

TEST_ARENA(mm_bare, without_frames_for_heads_no_page_stays_bare,
	   arena_borrow(MIB(32), .phantom = GIB(1)))
{
	fail_arm(&a->mm.fail, FAIL_META, 1, FAIL_AGAIN);
	EXPECT_EQ(add_bare(&a->pool, 1, 100), 0);
	fail_disarm(&a->mm.fail);
	EXPECT(arena_accounted(a));
	EXPECT_EQ(add_bare(&a->pool, 1, 100), 100);
}

TEST_ARENA(mm_bare, surplus_that_is_bare_goes_with_its_promise, bare_arena(2, 600))
{
	const u64 pages = a->pool.pages;

	EXPECT_EQ(pool_reserve(&a->pool, pages), 0);
	EXPECT_EQ(pool_resize(&a->pool, hvo_on(), 7), 7);
	EXPECT_EQ(a->pool.surplus, pages - 7);
	EXPECT_EQ(bare_pages(&a->pool, 1), pages);
	pool_unreserve(&a->pool, pages);
	pool_expect_counts(&a->pool, 7, 0, 0);
	EXPECT_EQ(mm_counted(&a->mm, COUNT_CHANGE(BLOCK_BARE, BLOCK_HUGE)), 0);
}

/* ---- pages of 1 GiB ---- */

TEST_ARENA(mm_bare, a_page_of_1g_is_made_or_demoted_when_it_is_wanted,
	   arena_borrow(MIB(32), .phantom = GIB(3)))
{
	struct page *page;

	EXPECT_EQ(add_bare(&a->giga, NODE_NONE, 5), 3);
	EXPECT_EQ(bare_pages(&a->giga, 1), 3);
	EXPECT(arena_accounted(a));
	page = pool_page_take(&a->giga, NODE_NONE, POOL_ANY);
	REQUIRE(page);
	EXPECT(huge_tails_right(&a->mm, block_of_page(page), GIGA_ORDER, 97));
	EXPECT_EQ(bare_pages(&a->giga, 1), 2);
	EXPECT(arena_accounted(a));
	EXPECT_EQ(pool_demote(&a->giga, &a->pool, hvo_on(), 1), 1);
	EXPECT_EQ(a->pool.pages, GIB_BLOCKS);
	EXPECT_EQ(bare_pages(&a->giga, 1), 1);
	EXPECT(arena_accounted(a));
	EXPECT_EQ(pool_shrink(&a->giga, hvo_on(), 1), 1);
	EXPECT_EQ(a->giga.pages, 1);
	EXPECT(arena_accounted(a));
	pool_page_give(&a->giga, page);
}

/* ---- nodes ---- */

TEST_ARENA(mm_bare, nodes_share_and_the_nearest_gives,
	   arena_borrow(MIB(64), .phantom = GIB(4), .phantom_nodes = 2))
{
	struct page *page;

	EXPECT_EQ(add_bare(&a->pool, NODE_NONE, 6), 6);
	for (node_t n = 0; n < 3; n++)
		EXPECT_EQ(bare_pages(&a->pool, n), 2);
	EXPECT_EQ(add_bare(&a->pool, 2, 498), 498);
	EXPECT_EQ(add_bare(&a->pool, 7, 1), 0);
	EXPECT(arena_accounted(a));
	page = pool_page_take(&a->pool, 1, POOL_ANY);
	REQUIRE(page);
	EXPECT_EQ(block_zone(&a->mm, block_of_page(page))->node, 1);
	pool_page_give(&a->pool, page);
	/* node 1 has a made page now, and still node 2 gives its own */
	page = pool_page_take(&a->pool, 2, POOL_ANY);
	REQUIRE(page);
	EXPECT_EQ(block_zone(&a->mm, block_of_page(page))->node, 2);
	pool_page_give(&a->pool, page);
	EXPECT_EQ(pool_shrink_on(&a->pool, hvo_on(), 2, 10000), 500);
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

TEST_ARENA(mm_bare, many_cpus_get_each_page_once, bare_arena(3, 1400))
{
	const u64 pages = a->pool.pages;
	struct takers takers = {.pool = &a->pool, .how = POOL_ANY, .each = pages};

	cpus_run_together(take_many, &takers);
	EXPECT_EQ(takers.taken, pages);
	EXPECT_EQ(a->pool.in_use, pages);
	EXPECT_EQ(a->pool.free, 0);
}

/* Promised pages are there for all who take them, while others are being made. */
TEST(mm_bare, promised_pages_are_not_refused_while_others_are_made)
{
	for (unsigned trial = 0; trial < TRIALS && !test_failed(); trial++) {
		const u64 cpus = cpumask_weight(&cpus_online);
		struct takers takers = {.how = POOL_RESERVED, .each = 1};
		/* each page that is taken needs 13 frames: 4 of records, a head, 8 page tables */
		struct arena *a =
			arena_borrow(MIB(32) + cpus / 32 * MIB(2), .phantom = cpus * GIB(1));

		if (!a)
			return;
		takers.pool = &a->giga;
		EXPECT_EQ(add_bare(takers.pool, NODE_NONE, cpus), cpus);
		EXPECT_EQ(pool_reserve(takers.pool, cpus), 0);
		cpus_run_together(take_many, &takers);
		EXPECT_EQ(takers.refused, 0);
		arena_return(a);
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
			pool_shrink(pool, hvo_on(), 500 + i);
			add_bare(pool, NODE_NONE, 900);
		} else {
			section_open_next(arena_phantom_zone(c->a), SECTION_ON_DEMAND);
			section_close(&c->a->mm,
				      (arena_phantom_block(c->a) + i * 37) / SECTION_BLOCKS);
		}
	}
}

TEST_ARENA(mm_bare, cpus_that_add_take_and_shrink_at_once_lose_nothing, bare_arena(4, 1200))
{
	struct changers c = {.a = a};

	cpus_run_together(change_all, &c);
}

/* ---- others that want the memory itself ---- */

TEST_ARENA(mm_bare, a_bare_page_makes_room_for_a_range_and_leaves_a_bad_frame, bare_arena(2, 300))
{
	const u32 index = a->pool.node[1].free.head;

	EXPECT_EQ(mm_contig_alloc_range(&a->mm, block_pfn(index), BLOCK_FRAMES), 0);
	EXPECT_EQ(a->pool.pages, 300);
	EXPECT(arena_accounted(a));
	mm_contig_free_range(&a->mm, block_pfn(index), BLOCK_FRAMES);
	EXPECT_EQ(mm_mark_bad(&a->mm, block_pfn(a->pool.node[1].free.head) + 5), 0);
	EXPECT_EQ(a->pool.pages, 300);
}

/* ---- at boot ---- */

TEST_ARENA(mm_bare, pages_at_boot_stay_bare_if_asked_for, arena_borrow(MIB(32), .phantom = GIB(3)))
{
	struct pool_boot_request request = {
		.bare = true, .nodes = 1, .on = {{.node = 1, .count = 1000}}};

	EXPECT_EQ(pool_boot_make(&request, &a->pool, hvo_on()), 1000);
	EXPECT_EQ(a->pool.boot, 1000);
	EXPECT_EQ(a->pool.boot_bare, 1000);
	EXPECT_EQ(a->pool.free, 1000);
}
