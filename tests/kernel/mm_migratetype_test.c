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

TEST_ARENA(mm_migratetype, impossible_ranges_are_refused,
	   arena_borrow(MIB(16), .phantom = GIB(1), .phantom_nodes = 2))
{
	u32 first;

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
}

/*
 * A block that is free as a huge page, and one that is bare, are declared CMA. Neither is given out
 * as a huge page, or taken for a change that does not leave it free.
 */
TEST_ARENA(mm_migratetype, cma_blocks_are_no_huge_pages, borrow_gigabyte())
{
	static struct page *pages[GIB_BLOCKS + 1];
	u32 huge, bare, count = 0;
	struct zone *zone = arena_phantom_zone(a);

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
}
