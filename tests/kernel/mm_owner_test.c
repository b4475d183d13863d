/*
 * Page owner: the notes about a page, and what happens to a page that is freed twice.
 */
#include "mm/page/page_owner.h"

#include "tests/kernel/mm_test.h"

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
