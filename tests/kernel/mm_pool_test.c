/*
 * The pool: it has as many pages as fit, and no page is lost, whichever CPU grows or shrinks it.
 */
#include "mm/hugetlb/pool.h"

#include "kernel/run/test.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/memmap/meta.h"
#include "mm/page/page_alloc.h"
#include "mm/zone/section.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/cpus.h"

TEST(mm_pool, more_than_fits_gives_as_many_as_fit)
{
	struct arena *a = arena_borrow(MIB(2), .phantom = GIB(1));
	u64 grown;

	if (!a)
		return;
	grown = pool_grow(&a->pool, hvo_mode_find("on"), 100000);
	EXPECT_EQ(a->pool.pages, grown);
	EXPECT_EQ(a->pool.free, grown);
	/*
	 * There is one metadata block and no way to get another. Its frames become heads, except
	 * for tables, records and those that are kept.
	 */
	EXPECT(grown >= BLOCK_FRAMES - META_EMERGENCY - 24);
	EXPECT(grown < BLOCK_FRAMES);
	EXPECT(arena_accounted(a));
	EXPECT_EQ(pool_grow(&a->pool, hvo_mode_find("on"), 1), 0);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_mode_find("on"), 100000), grown);
	EXPECT_EQ(a->pool.pages, 0);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/*
 * Grow the pool over all blocks of an arena with real memory. Metadata memory takes what it needs
 * and no more.
 */
static void check_nearly_all_memory(const char *name, u64 bytes)
{
	struct arena *a = arena_borrow(bytes);
	const struct hvo_mode *mode = hvo_mode_find(name);
	const u64 blocks = bytes >> BLOCK_SHIFT;
	u64 grown;

	if (!a)
		return;
	grown = pool_grow(&a->pool, mode, blocks);
	EXPECT(grown < blocks);
	/* The baselines use mapped sections, which here means the second one. */
	EXPECT(grown >= (mode->mapped ? blocks / 2 - 4 : blocks - 3));
	EXPECT_EQ(a->pool.pages, grown);
	EXPECT(arena_accounted(a));
	EXPECT_EQ(pool_shrink(&a->pool, mode, blocks), grown);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_pool, all_but_a_few_blocks_fit_with_hvo_on)
{
	check_nearly_all_memory("on", MIB(32));
}

TEST(mm_pool, all_of_a_mapped_section_fits_batched)
{
	check_nearly_all_memory("batched", MIB(256));
}

TEST(mm_pool, all_of_a_mapped_section_fits_unbatched)
{
	check_nearly_all_memory("unbatched", MIB(256));
}

TEST(mm_pool, all_of_a_mapped_section_fits_without_hvo)
{
	check_nearly_all_memory("off", MIB(256));
}

TEST(mm_pool, resize_goes_both_ways)
{
	struct arena *a = arena_borrow(MIB(2), .phantom = GIB(1));
	const struct hvo_mode *on = hvo_mode_find("on");

	if (!a)
		return;
	EXPECT_EQ(pool_resize(&a->pool, on, 10), 10);
	EXPECT_EQ(pool_resize(&a->pool, on, 25), 25);
	EXPECT_EQ(pool_resize(&a->pool, on, 3), 3);
	EXPECT_EQ(pool_resize(&a->pool, on, 3), 3);
	EXPECT_EQ(pool_resize(&a->pool, on, 0), 0);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_pool, free_pages_are_frozen_and_marked)
{
	struct arena *a = arena_borrow(MIB(2), .phantom = GIB(1));
	const struct hvo_mode *on = hvo_mode_find("on");
	struct page *page;

	if (!a)
		return;
	EXPECT_EQ(pool_grow(&a->pool, on, 3), 3);
	block_list_foreach(&a->mm, index, &a->pool.node[1].free) {
		page = block_page(&a->mm, index);
		EXPECT_EQ(page->refcount, 0);
		EXPECT(!page_try_get(page));
		EXPECT(page->flags & PAGE_HUGETLB);
		EXPECT(page->flags & PAGE_OPTIMISED);
		EXPECT(page->flags & PAGE_COMPOUND);
	}
	page = pfn_page(&a->mm, block_pfn(a->pool.node[1].free.head));
	EXPECT_EQ(pool_shrink(&a->pool, on, 3), 3);
	/* The block is still huge but no longer the pool's. */
	EXPECT(!(block_look(block_of(&a->mm, page_to_pfn(page))).flags & BLOCK_POOL));
	EXPECT_EQ(page->refcount, 0);
	page = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, 0, 1);
	REQUIRE(page);
	/* A user who allocates it has an ordinary compound page. */
	EXPECT(!(page->flags & PAGE_HUGETLB));
	EXPECT_EQ(page->refcount, 1);
	mm_page_free(&a->mm, page);
	arena_return(a);
}

TEST(mm_pool, a_page_in_use_is_not_taken_away)
{
	struct arena *a = arena_borrow(MIB(2), .phantom = GIB(1));
	const struct hvo_mode *on = hvo_mode_find("on");
	struct page *first, *second;

	if (!a)
		return;
	EXPECT(pool_page_take(&a->pool, 0, POOL_ANY) == NULL);
	EXPECT_EQ(pool_grow(&a->pool, on, 2), 2);
	first = pool_page_take(&a->pool, 0, POOL_ANY);
	second = pool_page_take(&a->pool, 0, POOL_ANY);
	REQUIRE(first && second && first != second);
	EXPECT_EQ(first->refcount, 1);
	EXPECT(pool_page_take(&a->pool, 0, POOL_ANY) == NULL);
	EXPECT_EQ(pool_shrink(&a->pool, on, 2), 0);
	EXPECT_EQ(a->pool.in_use, 2);
	EXPECT(arena_accounted(a));
	pool_page_give(&a->pool, first);
	EXPECT_EQ(pool_shrink(&a->pool, on, 2), 1);
	pool_page_give(&a->pool, second);
	EXPECT_EQ(pool_shrink(&a->pool, on, 2), 1);
	EXPECT_EQ(a->pool.pages + a->pool.free + a->pool.in_use, 0);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* ---- all CPUs ---- */

struct race {
	struct arena *a;
	const struct hvo_mode *mode;
	u64 grown, shrunk;
	u32 mixed_up;
};

enum { RACE_TURNS = 6, RACE_PAGES = 4 };

static void grow_and_shrink(void *arg)
{
	struct race *r = arg;

	for (unsigned turn = 0; turn < RACE_TURNS; turn++) {
		struct page *page;

		atomic_fetch_add(&r->grown, pool_grow(&r->a->pool, r->mode, RACE_PAGES));
		page = pool_page_take(&r->a->pool, 0, POOL_ANY);
		if (page) {
			page->private[0] = (u64)(virt_t)&page;
			for (unsigned i = 1; i < BLOCK_FRAMES; i++)
				if (page_head(&page[i]) != page)
					atomic_fetch_add(&r->mixed_up, 1);
			if (page->private[0] != (u64)(virt_t)&page)
				atomic_fetch_add(&r->mixed_up, 1);
			pool_page_give(&r->a->pool, page);
		}
		atomic_fetch_add(&r->shrunk, pool_shrink(&r->a->pool, r->mode, RACE_PAGES));
	}
}

static void check_race(const char *name, struct arena *a)
{
	struct race r = {.a = a, .mode = hvo_mode_find(name)};

	if (!a)
		return;
	cpus_run_together(grow_and_shrink, &r);
	EXPECT(r.grown > 0);
	EXPECT_EQ(r.mixed_up, 0);
	EXPECT_EQ(a->pool.pages, r.grown - r.shrunk);
	EXPECT_EQ(a->pool.free, a->pool.pages);
	EXPECT(arena_accounted(a));
	pool_shrink(&a->pool, r.mode, a->pool.pages);
	EXPECT_EQ(a->pool.pages, 0);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_pool, all_cpus_resize_it_with_hvo_on)
{
	check_race("on", arena_borrow(MIB(16), .phantom = GIB(1)));
}

TEST(mm_pool, all_cpus_resize_it_batched)
{
	check_race("batched", arena_borrow(MIB(256)));
}

TEST(mm_pool, all_cpus_resize_it_unbatched)
{
	check_race("unbatched", arena_borrow(MIB(256)));
}
