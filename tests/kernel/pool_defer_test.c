/*
 * Deferred pages of pools: they are pages in every count, nobody else gets their memory, they are
 * made when somebody wants them, and whole GiB go back unopened. Most cases use phantom GiB, whose
 * heads lie in real metadata memory; those on the machine's own pools use GiB with metadata memory
 * inside.
 */
#include "mm/hugetlb/pool_defer.h"

#include "kernel/run/test.h"
#include "mm/contig/bad_frames.h"
#include "mm/debug/account.h"
#include "mm/hugetlb/pool_boot.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/hvo/hvo_take.h"
#include "mm/memmap/meta.h"
#include "mm/zone/section.h"
#include "mm/zone/section_defer.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/pool_check.h"

enum { GIB_PAGES = GIB_BLOCKS - 2 };

static const struct hvo_mode *on(void)
{
	return &hvo_modes[HVO_ON];
}

/* An arena with `gibs` phantom GiB, all deferred by its pool; NULL if the case was skipped. */
static struct arena *deferred_arena(u64 gibs)
{
	struct arena *a = arena_borrow(MIB(32), .phantom = gibs * GIB(1));

	if (!a)
		return NULL;
	EXPECT_EQ(pool_defer(&a->pool, 1, gibs * GIB_PAGES + 7), gibs * GIB_PAGES);
	return a;
}

static void expect_sound(struct arena *a)
{
	pool_expect_consistent(&a->pool);
	EXPECT(arena_accounted(a));
}

TEST(mm_defer, a_deferred_page_is_a_page_and_nothing_is_opened)
{
	struct arena *a = deferred_arena(3);
	const u64 phantom = a ? arena_phantom_block(a) / SECTION_BLOCKS : 0;
	struct mm_usage usage;

	if (!a)
		return;
	EXPECT_EQ(a->pool.pages, 3 * GIB_PAGES);
	EXPECT_EQ(a->pool.free, 3 * GIB_PAGES);
	EXPECT_EQ(a->pool.in_use, 0);
	EXPECT_EQ(a->pool.node[1].free.count, 0);
	EXPECT_EQ(arena_phantom_zone(a)->unopened, 0);
	EXPECT_EQ(arena_phantom_zone(a)->deferred, 3 * order_pages(GIGA_ORDER));
	usage = arena_usage(a);
	EXPECT_EQ(usage.pool_free, 3ULL * GIB_PAGES * BLOCK_FRAMES);
	for (u64 section = phantom; section < phantom + 3 * GIB_SECTIONS; section++) {
		EXPECT_EQ(section_state(&a->mm, section), SECTION_DEFERRED);
		EXPECT_EQ(section_open(&a->mm, section, SECTION_ON_DEMAND), -EBUSY);
	}
	EXPECT_EQ(section_open_next(arena_phantom_zone(a), SECTION_ON_DEMAND), -ENOENT);
	EXPECT(pool_frames_saved(&a->pool) >= (s64)(3 * GIB_PAGES * MEMMAP_FRAMES_PER_BLOCK));
	expect_sound(a);
	arena_return(a);
}

TEST(mm_defer, the_first_page_that_is_taken_makes_those_of_its_gib)
{
	struct arena *a = deferred_arena(2);
	struct page *page;

	if (!a)
		return;
	page = pool_page_take(&a->pool, NODE_NONE, POOL_ANY);
	REQUIRE(page);
	EXPECT_EQ(mm_counted(&a->mm, COUNT_SECTIONS_OPENED), GIB_SECTIONS + 1);
	EXPECT_EQ(a->pool.pages, 2 * GIB_PAGES);
	EXPECT_EQ(a->pool.in_use, 1);
	EXPECT_EQ(a->pool.node[1].free.count, GIB_PAGES - 1);
	EXPECT_EQ(a->pool.node[1].deferred, GIB_PAGES);
	EXPECT(huge_tails_right(&a->mm, (u32)(page_to_pfn(page) >> BLOCK_ORDER), BLOCK_ORDER, 1));
	expect_sound(a);
	pool_page_give(&a->pool, page);
	for (unsigned i = 0; i < 5; i++) {
		page = pool_page_take(&a->pool, NODE_NONE, POOL_ANY);
		REQUIRE(page);
		pool_page_give(&a->pool, page);
	}
	EXPECT_EQ(mm_counted(&a->mm, COUNT_SECTIONS_OPENED), GIB_SECTIONS + 1);
	expect_sound(a);
	arena_return(a);
}

TEST(mm_defer, shrinking_gives_whole_gib_back_unopened)
{
	struct arena *a = deferred_arena(3);
	struct zone *zone = a ? arena_phantom_zone(a) : NULL;

	if (!a)
		return;
	EXPECT_EQ(pool_shrink(&a->pool, on(), GIB_PAGES), GIB_PAGES);
	EXPECT_EQ(zone->unopened, order_pages(GIGA_ORDER));
	EXPECT_EQ(mm_counted(&a->mm, COUNT_SECTIONS_OPENED), 1);
	expect_sound(a);
	/* fewer than a GiB has: the pages of one are made, and some of them given back */
	EXPECT_EQ(pool_shrink(&a->pool, on(), 3), 3);
	EXPECT_EQ(a->pool.pages, 2 * GIB_PAGES - 3);
	EXPECT_EQ(a->pool.node[1].deferred, GIB_PAGES);
	expect_sound(a);
	EXPECT_EQ(pool_shrink(&a->pool, on(), 100000), 2 * GIB_PAGES - 3);
	EXPECT_EQ(a->pool.pages, 0);
	EXPECT_EQ(zone->deferred, 0);
	EXPECT_EQ(pool_defer(&a->pool, 1, 100000), 2 * GIB_PAGES);
	expect_sound(a);
	arena_return(a);
}

TEST(mm_defer, promised_pages_may_be_deferred_and_stay)
{
	struct arena *a = deferred_arena(2);
	struct page *page;

	if (!a)
		return;
	EXPECT_EQ(pool_reserve(&a->pool, GIB_PAGES + 1), 0);
	EXPECT_EQ(pool_reserve(&a->pool, GIB_PAGES), -ENOMEM);
	EXPECT_EQ(pool_shrink(&a->pool, on(), 100000), GIB_PAGES - 1);
	EXPECT_EQ(pool_page_take(&a->pool, NODE_NONE, POOL_ANY), NULL);
	for (unsigned i = 0; i < GIB_PAGES + 1; i++) {
		page = pool_page_take(&a->pool, NODE_NONE, POOL_RESERVED);
		REQUIRE(page);
	}
	EXPECT_EQ(a->pool.pages, GIB_PAGES + 1);
	EXPECT_EQ(a->pool.free, 0);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* Everything else is used up, metadata memory too; the promise holds. */
TEST(mm_defer, no_other_user_gets_the_memory_or_the_heads)
{
	struct arena *a = arena_borrow(MIB(32), .phantom = GIB(3));
	struct famine famine;
	u64 taken = 0;

	if (!a)
		return;
	EXPECT_EQ(pool_defer(&a->pool, 1, 2 * GIB_PAGES), 2 * GIB_PAGES);
	EXPECT_EQ(section_open_range(&a->mm, arena_phantom_block(a) + 2 * GIB_BLOCKS, GIB_BLOCKS,
				     SECTION_ON_DEMAND),
		  0);
	famine_begin(&famine, a, META_LASTING, 0);
	EXPECT_EQ(meta_reserve(&a->mm.node[0], META_LASTING, 1), -ENOMEM);
	while (pool_page_take(&a->pool, NODE_NONE, POOL_ANY))
		taken++;
	EXPECT_EQ(taken, 2 * GIB_PAGES);
	EXPECT_EQ(a->pool.pages, 2 * GIB_PAGES);
	famine_end(&famine);
	expect_sound(a);
	arena_return(a);
}

/* The second of three GiB has a reserved frame. (Accounting would want the frame counted, too.) */
TEST(mm_defer, memory_in_use_at_start_up_is_not_deferred)
{
	struct arena *a = arena_borrow(MIB(32), .phantom = GIB(3));
	phys_t frame;

	if (!a)
		return;
	frame = a->phantom + GIB(1) + MIB(700);
	REQUIRE(memblock_list_add(&a->reserved, (struct memblock_range){.start = frame,
									.end = frame + PAGE_SIZE,
									.owner = OWNER_FIRMWARE}));
	EXPECT_EQ(pool_defer(&a->pool, 1, 3 * GIB_PAGES), 2 * GIB_PAGES);
	EXPECT_EQ(section_state(&a->mm, frame / SECTION_BYTES), SECTION_UNOPENED);
	EXPECT_EQ(section_state(&a->mm, frame / SECTION_BYTES - GIB_SECTIONS), SECTION_DEFERRED);
	arena_return(a);
}

/* ---- pages of 1 GiB ---- */

TEST(mm_defer, a_gib_is_one_page_of_its_size)
{
	struct arena *a = arena_borrow(MIB(32), .phantom = GIB(3));
	static struct pool_node nodes[ARENA_NODES_MAX * 2];
	static struct pool giga;
	struct page *page;

	if (!a)
		return;
	pool_init(&giga, &a->mm, GIGA_ORDER, nodes);
	EXPECT_EQ(pool_defer(&giga, NODE_NONE, 5), 3);
	EXPECT(arena_accounted_with(a, &giga));
	page = pool_page_take(&giga, NODE_NONE, POOL_ANY);
	REQUIRE(page);
	EXPECT(huge_tails_right(&a->mm, (u32)(page_to_pfn(page) >> BLOCK_ORDER), GIGA_ORDER, 97));
	EXPECT_EQ(giga.node[1].deferred, 2);
	EXPECT(arena_accounted_with(a, &giga));
	pool_page_give(&giga, page);
	/* one page is made, another is made for it, the third stays as it is */
	EXPECT_EQ(pool_demote(&giga, &a->pool, on(), 2), 2);
	EXPECT_EQ(a->pool.pages, 2 * GIB_BLOCKS);
	EXPECT_EQ(giga.node[1].deferred, 1);
	EXPECT(arena_accounted_with(a, &giga));
	EXPECT_EQ(pool_shrink(&giga, on(), 1), 1);
	EXPECT_EQ(arena_phantom_zone(a)->unopened, order_pages(GIGA_ORDER));
	EXPECT(arena_accounted_with(a, &giga));
	arena_return(a);
}

/* ---- nodes ---- */

TEST(mm_defer, nodes_share_and_the_nearest_gives)
{
	struct arena *a = arena_borrow(MIB(64), .phantom = GIB(4), .phantom_nodes = 2);
	struct page *page;

	if (!a)
		return;
	EXPECT_EQ(pool_defer(&a->pool, NODE_NONE, 2 * GIB_PAGES), 2 * GIB_PAGES);
	EXPECT_EQ(a->pool.node[1].deferred, GIB_PAGES);
	EXPECT_EQ(a->pool.node[2].deferred, GIB_PAGES);
	EXPECT_EQ(pool_defer(&a->pool, 2, 3 * GIB_PAGES), GIB_PAGES);
	EXPECT_EQ(pool_defer(&a->pool, 7, GIB_PAGES), 0);
	expect_sound(a);
	page = pool_page_take(&a->pool, 1, POOL_ANY);
	REQUIRE(page);
	EXPECT_EQ(block_zone(&a->mm, (u32)(page_to_pfn(page) >> BLOCK_ORDER))->node, 1);
	pool_page_give(&a->pool, page);
	/* node 1 has made pages now, and still node 2 gives its own */
	page = pool_page_take(&a->pool, 2, POOL_ANY);
	REQUIRE(page);
	EXPECT_EQ(block_zone(&a->mm, (u32)(page_to_pfn(page) >> BLOCK_ORDER))->node, 2);
	pool_page_give(&a->pool, page);
	EXPECT_EQ(a->pool.node[2].deferred, GIB_PAGES);
	EXPECT_EQ(pool_shrink_on(&a->pool, on(), 2, 10 * GIB_PAGES), 2 * GIB_PAGES);
	EXPECT_EQ(a->pool.node[1].pages, GIB_PAGES);
	expect_sound(a);
	arena_return(a);
}

/* ---- failures ---- */

/* Take a page while the `nth` place fails. False if there are fewer places. */
static bool take_while_failing(u32 nth, enum fail_again again)
{
	struct arena *a = deferred_arena(1);
	struct page *page;
	bool failed;

	if (!a)
		return false;
	fail_arm(&a->mm.fail, FAIL_ANY, nth, again);
	page = pool_page_take(&a->pool, NODE_NONE, POOL_ANY);
	failed = fail_disarm(&a->mm.fail);
	if (page)
		pool_page_give(&a->pool, page);
	EXPECT_EQ(a->pool.pages, a->pool.node[1].free.count);
	expect_sound(a);
	arena_return(a);
	return failed;
}

/* Memory may be lacking at any step: where pages cannot be made, their memory becomes free. */
TEST(mm_defer, pages_that_can_not_be_made_are_not_lost)
{
	struct arena *a = deferred_arena(1);
	u32 nth = 1;

	if (!a)
		return;
	arena_return(a);
	while (take_while_failing(nth, FAIL_ONCE) && !test_failed())
		nth = sweep_next(nth);
	EXPECT(nth > GIB_SECTIONS || test_failed());
	for (u32 every = 1; every < 8; every++)
		take_while_failing(every, FAIL_AGAIN);
}

TEST(mm_defer, without_frames_nothing_is_deferred)
{
	struct arena *a = arena_borrow(MIB(32), .phantom = GIB(1));

	if (!a)
		return;
	fail_arm(&a->mm.fail, FAIL_META, 1, FAIL_AGAIN);
	EXPECT_EQ(pool_defer(&a->pool, 1, GIB_PAGES), 0);
	fail_disarm(&a->mm.fail);
	EXPECT_EQ(pool_defer(&a->pool, 1, GIB_PAGES - 1), 0);
	expect_sound(a);
	EXPECT_EQ(section_open_next(arena_phantom_zone(a), SECTION_ON_DEMAND), 0);
	EXPECT_EQ(pool_defer(&a->pool, 1, GIB_PAGES), 0);
	expect_sound(a);
	arena_return(a);
}

/* ---- many CPUs ---- */

struct takers {
	struct pool *pool;
	u64 taken, each;
};

static void take_many(void *arg)
{
	struct takers *takers = arg;

	for (u64 i = 0; i < takers->each; i++) {
		struct page *page = pool_page_take(takers->pool, NODE_NONE, POOL_ANY);

		if (!page) {
			/* none was free and none was coming, so it stays so: nobody gives one */
			spin_lock(&takers->pool->lock);
			EXPECT_EQ(takers->pool->free, 0);
			EXPECT_EQ(takers->pool->opening, 0);
			spin_unlock(&takers->pool->lock);
			return;
		}
		/* one reference, so nobody else has taken it */
		EXPECT_EQ(atomic_load_relaxed(&page->refcount), 1);
		atomic_fetch_add(&takers->taken, 1);
	}
}

TEST(mm_defer, many_cpus_get_each_page_once)
{
	struct arena *a = deferred_arena(3);
	struct takers takers = {.each = 3 * GIB_PAGES};

	if (!a)
		return;
	takers.pool = &a->pool;
	cpus_run_together(take_many, &takers);
	EXPECT_EQ(takers.taken, 3 * GIB_PAGES);
	EXPECT_EQ(a->pool.in_use, 3 * GIB_PAGES);
	EXPECT_EQ(a->pool.free, 0);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

struct changers {
	struct arena *a;
	u32 next;
};

/* One CPU takes and gives, one shrinks and defers again, the others open sections. */
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
			pool_shrink(pool, on(), GIB_PAGES + i);
			pool_defer(pool, NODE_NONE, 2 * GIB_PAGES);
		} else {
			section_open_next(arena_phantom_zone(c->a), SECTION_ON_DEMAND);
			pools_open_deferred(&c->a->mm, c->a->phantom / GIB(1) + i % 4);
		}
	}
}

TEST(mm_defer, cpus_that_defer_take_and_shrink_at_once_lose_nothing)
{
	struct changers c = {.a = deferred_arena(4)};

	if (!c.a)
		return;
	cpus_run_together(change_all, &c);
	expect_sound(c.a);
	arena_return(c.a);
}

/* ---- others that want the memory itself ---- */

TEST(mm_defer, a_range_that_is_wanted_is_opened_by_its_pool)
{
	struct arena *a = deferred_arena(2);
	const u32 first = a ? arena_phantom_block(a) + GIB_BLOCKS : 0;

	if (!a)
		return;
	EXPECT_EQ(section_open_range(&a->mm, first, 1, SECTION_ON_DEMAND), 0);
	EXPECT_EQ(section_state(&a->mm, first / SECTION_BLOCKS), SECTION_OPEN);
	EXPECT_EQ(section_state(&a->mm, arena_phantom_block(a) / SECTION_BLOCKS), SECTION_DEFERRED);
	EXPECT_EQ(a->pool.pages, 2 * GIB_PAGES);
	expect_sound(a);
	pools_open_deferred(&a->mm, first / GIB_BLOCKS); /* which is open already */
	EXPECT_EQ(a->pool.node[1].deferred, GIB_PAGES);
	expect_sound(a);
	EXPECT_EQ(mm_mark_bad(&a->mm, block_pfn(arena_phantom_block(a)) + 5), 0);
	EXPECT_EQ(section_state(&a->mm, arena_phantom_block(a) / SECTION_BLOCKS), SECTION_OPEN);
	expect_sound(a);
	arena_return(a);
}

/* ---- on the machine ---- */

TEST(mm_defer, the_machines_gib_brings_its_own_metadata_memory)
{
	const u64 pages = pool_2m.pages;
	struct page *page[5];

	if (!pool_may_spoil_a_gib() || pool_defer(&pool_2m, 0, GIB_PAGES) == 0)
		SKIP("needs a GiB that was never opened");
	EXPECT_EQ(pool_2m.pages, pages + GIB_PAGES);
	EXPECT(account_machine());
	for (unsigned i = 0; i < ARRAY_LEN(page); i++) {
		page[i] = pool_page_take(&pool_2m, NODE_NONE, POOL_ANY);
		REQUIRE(page[i]);
		*(u64 *)page_address(page[i]) = i;
	}
	EXPECT(account_machine());
	for (unsigned i = 0; i < ARRAY_LEN(page); i++) {
		EXPECT_EQ(*(u64 *)page_address(page[i]), i);
		pool_page_give(&pool_2m, page[i]);
	}
	EXPECT_EQ(pool_resize(&pool_2m, on(), pages), pages);
	EXPECT(account_machine());
}

TEST(mm_defer, boot_pools_defer_whole_gib_and_make_the_rest)
{
	struct arena *a = arena_borrow(MIB(32), .phantom = GIB(3));
	struct pool_boot_request request = {.total = 2 * GIB_PAGES + 9, .defer = true};

	if (!a)
		return;
	EXPECT_EQ(pool_boot_make(&request, &a->pool, on()), request.total);
	EXPECT_EQ(a->pool.node[1].deferred, 2 * GIB_PAGES);
	EXPECT_EQ(a->pool.boot, request.total);
	EXPECT_EQ(a->pool.free, request.total);
	expect_sound(a);
	arena_return(a);
}
