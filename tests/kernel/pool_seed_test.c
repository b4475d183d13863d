/*
 * Edge cases of the HVO series and the pools before it (Kravetz, "Batch hugetlb vmemmap
 * modification operations", 2023-09): a node without frames, odd pages, promises that make surplus
 * pages, and page tables that cannot be had.
 */
#include <arch/cpu.h>

#include "kernel/core/fail.h"
#include "kernel/core/shootdown.h"
#include "kernel/run/test.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/hvo/hvo.h"
#include "mm/zone/section.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/pool_check.h"

enum { EACH = 10, PER_PAGE = 7 };

static struct famine famine;

/*
 * Borrow an arena with a pool that has as many pages on each of two nodes. Node 0 has no frames to
 * restore any of them. Returns NULL if the case is skipped.
 */
static struct arena *borrow_half_starved(void)
{
	struct arena *a = arena_borrow(MIB(512), .nodes = 2);

	if (!a)
		return NULL;
	EXPECT_EQ(pool_grow(&a->pool, hvo_mode_find("batched"), 2 * EACH), 2 * EACH);
	famine_begin(&famine, a, META_MEMMAP, PER_PAGE - 1);
	return a;
}

/* The pages of node 1 go, and those of node 0 stay as surplus pages. */
TEST_ARENA(mm_pool, a_node_without_frames_keeps_nobody_from_shrinking, borrow_half_starved())
{
	const struct hvo_mode *batched = hvo_mode_find("batched");

	EXPECT_EQ(pool_shrink(&a->pool, batched, 2 * EACH), EACH);
	EXPECT_EQ(a->pool.node[0].pages, EACH);
	EXPECT_EQ(a->pool.node[0].surplus, EACH);
	EXPECT_EQ(a->pool.node[1].pages, 0);
	pool_expect_consistent(&a->pool);
	famine_end(&famine);
	EXPECT_EQ(pool_shrink(&a->pool, batched, EACH), EACH);
	EXPECT_EQ(a->pool.surplus, 0);
}

/*
 * Some of the pages that should go cannot. The other pages make up for them, but the total is no
 * more than was asked for.
 */
TEST_ARENA(mm_pool, resizing_past_a_node_without_frames_ends_at_the_target, borrow_half_starved())
{
	const struct hvo_mode *batched = hvo_mode_find("batched");

	EXPECT_EQ(pool_resize(&a->pool, batched, 3 * EACH / 2), 3 * EACH / 2);
	EXPECT_EQ(a->pool.pages - a->pool.surplus, 3 * EACH / 2);
	pool_expect_consistent(&a->pool);
	famine_end(&famine);
	EXPECT_EQ(pool_resize(&a->pool, batched, 0), 0);
	EXPECT_EQ(a->pool.pages, 0);
}

/* The pool remembers which node gave the last odd page, as it does for growing. */
TEST_ARENA(mm_pool, odd_pages_leave_the_nodes_in_turn, arena_borrow(MIB(512), .nodes = 2))
{
	const struct hvo_mode *on = hvo_mode_find("on");

	EXPECT_EQ(pool_grow(&a->pool, on, 64), 64);
	for (unsigned i = 0; i < 3; i++)
		EXPECT_EQ(pool_shrink(&a->pool, on, 1), 1);
	for (node_t n = 0; n < 2; n++)
		EXPECT(a->pool.node[n].pages == 30 || a->pool.node[n].pages == 31);
	EXPECT_EQ(a->pool.pages, 61);
	EXPECT_EQ(pool_shrink(&a->pool, on, 61), 61);
}

/*
 * Pages that a promise lacks are made as surplus and go when the promise is given back. Persistent
 * pages stay.
 */
TEST_ARENA(mm_pool, a_promise_brings_surplus_and_takes_it_along,
	   arena_borrow(MIB(16), .phantom = GIB(1)))
{
	const struct hvo_mode *on = hvo_mode_find("on");
	struct page *page;

	pool_makes_on_demand();
	EXPECT_EQ(pool_grow(&a->pool, on, 2), 2);
	a->pool.overcommit = 3;
	EXPECT_EQ(pool_reserve(&a->pool, 6), -ENOMEM);
	EXPECT_EQ(a->pool.pages, 2);
	EXPECT_EQ(a->pool.reserved, 0);
	EXPECT_EQ(pool_reserve(&a->pool, 5), 0);
	EXPECT_EQ(a->pool.pages, 5);
	EXPECT_EQ(a->pool.surplus, 3);
	EXPECT_EQ(a->pool.reserved, 5);
	pool_expect_consistent(&a->pool);
	EXPECT_EQ(pool_reserve(&a->pool, 1), -ENOMEM);
	page = pool_page_take(&a->pool, 0, POOL_RESERVED);
	REQUIRE(page);
	pool_unreserve(&a->pool, 4);
	EXPECT_EQ(a->pool.pages, 2);
	EXPECT_EQ(a->pool.surplus, 0);
	pool_page_give(&a->pool, page);
	EXPECT_EQ(a->pool.pages, 2);
	EXPECT_EQ(a->pool.free, 2);
	pool_expect_consistent(&a->pool);
}

/*
 * If there is room for some of the pages only, nothing is promised, and the pages already made go.
 */
TEST_ARENA(mm_pool, a_promise_that_can_not_be_kept_leaves_no_surplus,
	   arena_borrow(MIB(16), .phantom = GIB(1)))
{
	pool_makes_on_demand();
	a->pool.overcommit = 4096;
	EXPECT_EQ(pool_reserve(&a->pool, 2048), -ENOMEM);
	EXPECT_EQ(a->pool.reserved, 0);
	EXPECT_EQ(a->pool.pages, 0);
	EXPECT_EQ(a->pool.surplus, 0);
	pool_expect_consistent(&a->pool);
}

/*
 * Grow a pool by `pages` while metadata memory refuses its `nth` request. Returns how many of the
 * pages have all their struct pages, or ~0 if there is no such request.
 */
static u64 grow_with_failure(struct arena *a, u64 pages, u64 nth)
{
	const struct hvo_mode *batched = hvo_mode_find("batched");
	u64 grown, full = 0;

	fail_arm(&a->mm.fail, FAIL_META, nth, FAIL_ONCE);
	grown = pool_grow(&a->pool, batched, pages);
	if (!fail_disarm(&a->mm.fail))
		full = ~0ULL;
	pool_expect_consistent(&a->pool);
	for (u32 i = a->pool.node[0].free.head; i != BLOCK_NONE && full != ~0ULL;
	     i = block_at(&a->mm, i)->next) {
		full += block_look_at(&a->mm, i).state == BLOCK_FULL;
		EXPECT(huge_tails_right(&a->mm, i, BLOCK_ORDER, 1));
	}
	EXPECT_EQ(pool_shrink(&a->pool, batched, pages), grown);
	EXPECT_EQ(a->pool.pages, 0);
	EXPECT(arena_accounted(a));
	return full;
}

/* Without a frame for a page table the pages are still made, with all their struct pages. */
TEST(mm_pool, pages_that_can_not_be_optimised_are_pages)
{
	u64 full = 0, most = 0;

	for (u64 nth = 1; full != ~0ULL; nth++) {
		struct arena *a = arena_borrow(MIB(256));

		if (!a)
			return;
		full = grow_with_failure(a, 4, nth);
		most = full != ~0ULL ? MAX(most, full) : most;
		arena_return(a);
	}
	EXPECT_EQ(most, 4);
}

/*
 * At first there is no frame for one page table. The pages of the other section are made, their
 * frames are flushed, and one of the frames becomes the table.
 */
TEST(mm_pool, frames_of_one_section_split_the_next)
{
	u64 full = 0;

	for (u64 nth = 1; full != ~0ULL; nth++) {
		struct arena *a = arena_borrow(MIB(512));

		if (!a)
			return;
		full = grow_with_failure(a, 2 * SECTION_BLOCKS, nth);
		EXPECT(full == 0 || full == ~0ULL);
		arena_return(a);
	}
}
