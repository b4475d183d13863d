/*
 * Migratetypes: the pages on a free list always have the type of that list, and a change of type is
 * complete or not made at all. Phantom memory is enough, because nothing is written to it.
 */
#include "mm/zone/migratetype.h"

#include "kernel/run/test.h"
#include "mm/page/pcp.h"
#include "mm/page/pcp_drain.h"
#include "mm/zone/transit.h"
#include "tests/kernel/listed.h"

TEST(mm_migratetype, a_range_changes_type_with_all_that_is_free_in_it)
{
	struct arena *a = borrow_gigabyte();
	struct zone *zone;
	u32 first;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	first = arena_phantom_block(a) + AT;
	EXPECT_EQ(migratetype_set(&a->mm, first, RANGE, MIGRATE_CMA), 0);
	EXPECT_EQ(listed(zone, MIGRATE_CMA), (u64)RANGE * BLOCK_FRAMES);
	EXPECT_EQ(listed(zone, MIGRATE_MOVABLE),
		  order_pages(GIGA_ORDER) - (u64)RANGE * BLOCK_FRAMES);
	EXPECT(arena_accounted(a));
	EXPECT_EQ(migratetype_set(&a->mm, first, RANGE, MIGRATE_MOVABLE), 0);
	EXPECT(one_free_gigabyte(zone)); /* merged again as if nothing had happened */
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_migratetype, small_free_pages_move_with_their_block)
{
	struct arena *a = borrow_gigabyte();
	struct page *page;
	struct zone *zone;
	u32 index;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	page = alloc_on_phantom(a, 4, USE_MOVABLE); /* there is no per-CPU list for this order */
	REQUIRE(page);
	index = (u32)(page_to_pfn(page) >> BLOCK_ORDER);
	EXPECT_EQ(migratetype_set(&a->mm, index, 1, MIGRATE_UNMOVABLE), 0);
	EXPECT_EQ(listed(zone, MIGRATE_UNMOVABLE), BLOCK_FRAMES - 16);
	EXPECT(arena_accounted(a));
	mm_page_free(&a->mm, page); /* freeing reads the type again */
	EXPECT_EQ(listed(zone, MIGRATE_UNMOVABLE), BLOCK_FRAMES);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_migratetype, impossible_ranges_are_refused)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1), .phantom_nodes = 2);
	u32 first;

	if (!a)
		return;
	arena_open_all(a);
	first = arena_phantom_block(a);
	EXPECT_EQ(migratetype_set(&a->mm, first, 0, MIGRATE_CMA), (u64)-EINVAL);
	/* The range ends beyond RAM. */
	EXPECT_EQ(migratetype_set(&a->mm, first + GIB_BLOCKS - 1, 2, MIGRATE_CMA), (u64)-EINVAL);
	EXPECT_EQ(migratetype_set(&a->mm, first - 1, 2, MIGRATE_CMA), (u64)-EINVAL);
	EXPECT_EQ(migratetype_set(&a->mm, 0, ~0U, MIGRATE_CMA), (u64)-EINVAL);
	/* The range has two zones. */
	EXPECT_EQ(migratetype_set(&a->mm, first + GIB_BLOCKS / 2 - 1, 2, MIGRATE_CMA),
		  (u64)-EINVAL);
	EXPECT_EQ(migratetype_set(&a->mm, first, 1, MIGRATE_TYPES), (u64)-EINVAL);
	EXPECT_EQ(migratetype_set(&a->mm, arena_block(a), 1, MIGRATE_CMA),
		  (u64)-EBUSY); /* Metadata memory */
	EXPECT_EQ(listed(arena_phantom_zone(a), MIGRATE_CMA), 0);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_migratetype, cma_serves_movable_pages_only)
{
	struct arena *a = borrow_gigabyte();
	struct zone *zone;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	EXPECT_EQ(migratetype_set(&a->mm, arena_phantom_block(a), GIB_BLOCKS, MIGRATE_CMA), 0);
	EXPECT(!alloc_on_phantom(a, 0, USE_UNMOVABLE));
	EXPECT(!alloc_on_phantom(a, 5, USE_RECLAIMABLE));
	EXPECT(!alloc_on_phantom(a, BLOCK_ORDER, USE_UNMOVABLE));
	EXPECT_EQ(listed(zone, MIGRATE_CMA), order_pages(GIGA_ORDER));
	EXPECT(alloc_on_phantom(a, 0, USE_MOVABLE) != NULL);
	EXPECT_EQ(block_type(block_at(&a->mm, arena_phantom_block(a) + 1)), MIGRATE_CMA);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(listed(zone, MIGRATE_CMA), order_pages(GIGA_ORDER) - 1);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/*
 * A block that is free as a huge page, and one that is bare, are declared CMA. Neither is given out
 * as a huge page, or taken for a change that does not leave it free.
 */
TEST(mm_migratetype, cma_blocks_are_no_huge_pages)
{
	static struct page *pages[GIB_BLOCKS + 1];
	struct arena *a = borrow_gigabyte();
	u32 huge, bare, count = 0;
	struct zone *zone;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	pages[0] = alloc_on_phantom(a, BLOCK_ORDER, USE_MOVABLE);
	REQUIRE(pages[0]);
	huge = (u32)(page_to_pfn(pages[0]) >> BLOCK_ORDER);
	mm_page_free(&a->mm, pages[0]);
	pcp_drain_all(&a->mm);
	bare = arena_phantom_block(a) + GIB_BLOCKS - 1;
	REQUIRE(bare != huge);
	EXPECT_EQ(block_look_at(&a->mm, huge).state, BLOCK_HUGE);
	EXPECT_EQ(migratetype_set(&a->mm, huge, 1, MIGRATE_CMA), 0);
	EXPECT_EQ(migratetype_set(&a->mm, bare, 1, MIGRATE_CMA), 0);
	EXPECT_EQ(block_take_in(zone, bare, 1, 1u << FREE_BARE | 1u << FREE_MAPPED, BLOCK_FULL),
		  BLOCK_NONE);
	do {
		pages[count] = alloc_on_phantom(a, BLOCK_ORDER, USE_MOVABLE);
	} while (pages[count] && ++count < ARRAY_LEN(pages));
	EXPECT_EQ(count, GIB_BLOCKS - 2);
	EXPECT_EQ(listed(zone, MIGRATE_CMA), 2 * BLOCK_FRAMES);
	while (count > 0)
		mm_page_free(&a->mm, pages[--count]);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* Fill all memory with small movable pages, except for `chunks_left` chunks of one block. */
static struct page *fill_but(struct arena *a, unsigned chunks_left)
{
	struct page *page, *first = NULL;

	while ((page = mm_page_alloc(&a->mm, 5, USE_MOVABLE, 0, 0)))
		first = page;
	for (unsigned i = 0; first && i < chunks_left; i++)
		mm_page_free(&a->mm, pfn_page(&a->mm, ALIGN_DOWN(page_to_pfn(first), BLOCK_FRAMES) +
							      64 * i));
	return first;
}

TEST(mm_migratetype, a_half_free_block_is_claimed_and_a_fuller_one_lends_pages)
{
	struct arena *a;
	struct page *full, *other;

	for (unsigned half = 0; half < 2; half++) {
		a = arena_borrow(MIB(16));
		if (!a)
			return;
		full = fill_but(a, half ? 8 : 7); /* of 16 chunks */
		REQUIRE(full);
		other = mm_page_alloc(&a->mm, 5, USE_UNMOVABLE, 0, 0);
		REQUIRE(other);
		EXPECT_EQ(page_to_pfn(other) >> BLOCK_ORDER, page_to_pfn(full) >> BLOCK_ORDER);
		EXPECT_EQ(block_type(block_of(&a->mm, page_to_pfn(other))),
			  half ? MIGRATE_UNMOVABLE : MIGRATE_MOVABLE);
		EXPECT_EQ(
			listed(arena_zone(a, 0), block_type(block_of(&a->mm, page_to_pfn(other)))),
			half ? 7 * 32 : 6 * 32);
		EXPECT(arena_accounted(a));
		arena_return(a);
	}
}
