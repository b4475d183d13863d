/*
 * Page owner and poison: the notes about a page, and what happens to a page that is written to
 * while it is free.
 */
#include "mm/page/page_owner.h"

#include <arch/clock.h>

#include "mm/contig/contig.h"
#include "mm/page/page_alloc.h"
#include "mm/page/page_check.h"
#include "mm/page/pcp.h"
#include "mm/page/pcp_drain.h"
#include "tests/kernel/arena.h"

/* Borrow an arena that has only real memory, so that its pages may be written to. */
static struct arena *borrow_watched(u32 watch)
{
	struct arena *a = arena_borrow(MIB(16));

	if (a)
		a->mm.watch = watch;
	return a;
}

static struct page *alloc_one(struct arena *a, unsigned order)
{
	return mm_page_alloc(&a->mm, order, USE_MOVABLE, 0, 0);
}

static u64 *contents(const struct page *page)
{
	return page_address(page);
}

TEST_ARENA(mm_owner, the_summary_counts_what_is_held_and_only_that, borrow_watched(WATCH_OWNERS))
{
	struct page *small, *middle, *huge;
	u64 since;

	EXPECT_EQ(page_owner_summary(&a->mm, 0, 4), 0);
	small = alloc_one(a, 0);
	middle = alloc_one(a, 5);
	REQUIRE(small && middle);
	since = middle->held_since + 1;
	while (clock_ns() < since)
		;
	huge = alloc_one(a, BLOCK_ORDER);
	REQUIRE(huge);
	EXPECT_EQ(page_owner_summary(&a->mm, 0, 4), 1 + 32 + 512);
	/* Pages that are not listed are counted, too. */
	EXPECT_EQ(page_owner_summary(&a->mm, 0, 1), 1 + 32 + 512);
	EXPECT_EQ(page_owner_summary(&a->mm, since, 4), 512);
	mm_page_free(&a->mm, middle);
	EXPECT_EQ(page_owner_summary(&a->mm, 0, 4), 1 + 512);
	mm_page_free(&a->mm, small);
	mm_page_free(&a->mm, huge);
	EXPECT_EQ(page_owner_summary(&a->mm, 0, 4), 0);
}

/* ---- poison ---- */

/*
 * A misused page is named and counted, and the lists do not change otherwise. The write is also
 * caught if the block was wholly free in between and was split again.
 */
TEST_ARENA(mm_owner, a_write_after_free_is_caught_wherever_it_hits,
	   borrow_watched(WATCH_POISON | WATCH_OWNERS))
{
	const unsigned orders[] = {0, 3, 6, BLOCK_ORDER};
	const u64 before = page_misuses();
	struct page *page;

	test_option("debug.bad_free", "keep");
	for (unsigned i = 0; i < ARRAY_LEN(orders); i++) {
		const u64 words = order_pages(orders[i]) * PAGE_SIZE / 8;

		REQUIRE((page = alloc_one(a, orders[i])));
		mm_page_free(&a->mm, page);
		contents(page)[words - 1] ^= 1; /* one bit of the page's last word */
		/* the page freed last is allocated first */
		REQUIRE(alloc_one(a, orders[i]) == page);
		EXPECT_EQ(page_misuses() - before, i + 1);
		mm_page_free(&a->mm, page);
	}
	REQUIRE((page = alloc_one(a, 0)));
	mm_page_free(&a->mm, page);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(arena_zone(a, 0)->free_small, 0);
	contents(page)[7] = 0;
	for (unsigned i = 0; i < 2; i++) { /* the message comes only once */
		REQUIRE((page = alloc_one(a, 4)));
		EXPECT_EQ(page_misuses() - before, ARRAY_LEN(orders) + 1);
		mm_page_free(&a->mm, page);
	}
}

TEST_ARENA(mm_owner, a_pool_page_is_no_write_after_free, borrow_watched(WATCH_POISON))
{
	const u64 before = page_misuses();
	u32 index;
	struct page *page = alloc_one(a, BLOCK_ORDER);

	REQUIRE(page);
	mm_page_free(&a->mm, page);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(pool_grow(&a->pool, hvo_on(), 1), 1);
	index = a->pool.node[0].free.head;
	/* the same block, which is still huge */
	EXPECT_EQ(index, page_to_pfn(page) >> BLOCK_ORDER);
	*(u64 *)phys_to_virt(block_pfn(index) << PAGE_SHIFT) = 1;
	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), 1), 1);
	page = alloc_one(a, BLOCK_ORDER);
	REQUIRE(page);
	mm_page_free(&a->mm, page);
	EXPECT_EQ(page_misuses(), before);
}

/* The blocks of a range were never filled with poison, so they may have any contents. */
TEST_ARENA(mm_owner, a_contiguous_range_is_no_write_after_free, borrow_watched(WATCH_POISON))
{
	const u64 before = page_misuses();
	struct page *range;

	test_option("debug.bad_free", "keep");
	test_option("contig", "index"); /* the other searches read mapped sections only */
	for (u32 index = arena_block(a); block_at(&a->mm, index); index++)
		if (block_look_at(&a->mm, index).state == BLOCK_BARE)
			*(u64 *)phys_to_virt(block_pfn(index) << PAGE_SHIFT) = 1;
	range = mm_contig_alloc(&a->mm, BLOCK_ORDER + 1, 0);
	REQUIRE(range);
	EXPECT_EQ(page_misuses(), before);
	mm_contig_free_range(&a->mm, page_to_pfn(range), order_pages(BLOCK_ORDER + 1));
}

/* Two users may believe that the page is theirs. */
TEST_ARENA(mm_owner, a_page_that_was_freed_twice_is_out_of_use, borrow_watched(WATCH_OWNERS))
{
	const u64 before = page_misuses();
	struct page *page = alloc_one(a, 3);

	test_option("debug.bad_free", "keep");
	REQUIRE(page);
	mm_page_free(&a->mm, page);
	mm_page_free(&a->mm, page);
	EXPECT_EQ(page_misuses() - before, 1);
	EXPECT_EQ(arena_usage(a).in_use, 0);
	EXPECT_EQ(arena_usage(a).bad, 1);
}
