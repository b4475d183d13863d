/*
 * HVO: the exact number of rounds that each mode takes, and the state that it leaves behind.
 *
 * Rounds are counted for the whole machine. Nothing else runs, so the difference of two readings
 * belongs to the case.
 */
#include "mm/hvo/hvo.h"

#include "kernel/core/shootdown.h"
#include "kernel/run/test.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/hvo/hvo_restore.h"
#include "mm/hvo/hvo_take.h"
#include "mm/hvo/hvo_unshare.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/vmemmap.h"
#include "mm/memmap/zone.h"
#include "mm/page/pcp.h"
#include "mm/zone/buddy.h"
#include "mm/zone/transit.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/pool_check.h"

enum { SAVED_PER_SECTION = 447 }; /* 64 pages x 7 frames, less the section's table */

/* The first block of the pool's free list. */
static u32 pool_block(struct arena *a, node_t node)
{
	return a->pool.node[node].free.head;
}

TEST_ARENA(mm_hvo, bare_blocks_become_huge_without_a_round, arena_borrow(MIB(2), .phantom = GIB(1)))
{
	const u64 before = rounds_so_far();

	EXPECT_EQ(pool_grow(&a->pool, hvo_mode_find("on"), SECTION_BLOCKS), SECTION_BLOCKS);
	EXPECT_EQ(rounds_so_far() - before, 0);
	EXPECT_EQ(pool_frames_saved(&a->pool), SAVED_PER_SECTION);
	EXPECT_EQ(block_changes(&a->mm, BLOCK_BARE, BLOCK_HUGE), SECTION_BLOCKS);
	EXPECT(huge_tails_right(&a->mm, pool_block(a, 1), BLOCK_ORDER, 1));
	EXPECT(arena_accounted(a));
	EXPECT_EQ(pool_shrink(&a->pool, hvo_mode_find("on"), SECTION_BLOCKS), SECTION_BLOCKS);
	EXPECT_EQ(rounds_so_far() - before, 0);
}

TEST_ARENA(mm_hvo, huge_blocks_become_bare_in_one_round, arena_borrow(MIB(2), .phantom = GIB(1)))
{
	const struct hvo_mode *on = hvo_mode_find("on");
	u64 before, memmap_bytes;

	arena_open_all(a);
	memmap_bytes = arena_usage(a).memmap_bytes;
	EXPECT_EQ(pool_grow(&a->pool, on, 30), 30);
	EXPECT_EQ(arena_usage(a).memmap_bytes, memmap_bytes + 30 * PAGE_SIZE);
	EXPECT_EQ(pool_shrink(&a->pool, on, 30), 30);
	before = rounds_so_far();
	EXPECT_EQ(hvo_bare_free_huge(arena_phantom_zone(a), ~0ULL), 30);
	EXPECT_EQ(rounds_so_far() - before, 1);
	EXPECT_EQ(arena_phantom_zone(a)->free_class[FREE_HUGE], 0);
	meta_end_batch(&a->mm.node[0]);
	EXPECT_EQ(arena_usage(a).gated, 0);
	EXPECT_EQ(arena_usage(a).memmap_bytes, memmap_bytes); /* every head came back */
}

/* ---- the baselines, in mapped sections of real memory ---- */

enum { BASELINE_PAGES = 40 };

/*
 * As in Linux, the round of a page flushes only the eight pages of its struct pages, and only a
 * split needs a full round. Afterwards no frame is gated.
 */
TEST_ARENA(mm_hvo, unbatched_takes_a_round_for_every_page, arena_borrow(MIB(256)))
{
	const struct hvo_mode *unbatched = hvo_mode_find("unbatched");
	struct shootdown_stats before, after;

	shootdown_stats_read(&before);
	EXPECT_EQ(pool_grow(&a->pool, unbatched, BASELINE_PAGES), BASELINE_PAGES);
	EXPECT_EQ(rounds_so_far() - before.flushes,
		  BASELINE_PAGES + mm_counted(&a->mm, COUNT_PMD_SPLITS));
	EXPECT_EQ(pool_frames_saved(&a->pool), BASELINE_PAGES * 7 - 1);
	EXPECT(huge_tails_right(&a->mm, pool_block(a, 0), BLOCK_ORDER, 1));
	EXPECT(arena_accounted(a));
	EXPECT_EQ(pool_shrink(&a->pool, unbatched, BASELINE_PAGES), BASELINE_PAGES);
	shootdown_stats_read(&after);
	EXPECT_EQ(after.ranged - before.ranged, 2 * BASELINE_PAGES);
	EXPECT_EQ(after.full - before.full, mm_counted(&a->mm, COUNT_PMD_SPLITS));
	EXPECT_EQ(arena_usage(a).gated, 0);
}

/* hvo=on restores pages of mapped sections for other users of their blocks. */
TEST_ARENA(mm_hvo, restoring_with_hvo_on_takes_one_round, arena_borrow(MIB(256)))
{
	const struct hvo_mode *batched = hvo_mode_find("batched");
	struct block_list list = BLOCK_LIST_INIT, done = BLOCK_LIST_INIT, left;
	u64 before, restored;

	EXPECT_EQ(hvo_take_blocks(arena_zone(a, 0), batched, BLOCK_ORDER, 4, &list), 4);
	EXPECT_EQ(hvo_optimise(&a->mm, batched, &list, &left), 0);
	before = rounds_so_far();
	EXPECT_EQ(hvo_restore(&a->mm, hvo_mode_find("on"), &list, &done, &restored), 0);
	EXPECT_EQ(rounds_so_far() - before, 1);
	EXPECT_EQ(restored, 4);
	hvo_forget_heads(&a->mm, &done);
	block_list_publish_free(&a->mm, &done);
}

/*
 * Restored blocks are ordinary memory: every frame can be allocated, and its struct page is private
 * again.
 */
TEST_ARENA(mm_hvo, restored_blocks_can_be_split, arena_borrow(MIB(256)))
{
	struct page *page;
	u32 index;

	EXPECT_EQ(pool_grow(&a->pool, hvo_mode_find("batched"), 4), 4);
	index = pool_block(a, 0);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_mode_find("batched"), 4), 4);
	EXPECT_EQ(block_look_at(&a->mm, index).state, BLOCK_FULL);
	for (unsigned i = 0; i < BLOCK_FRAMES; i++) {
		page = pfn_page(&a->mm, block_pfn(index) + i);
		if (page->refcount != 0 || page->flags != 0 || page_head(page) != page)
			test_fail(__FILE__, __LINE__, "struct page %u is not that of a free page",
				  i);
		page->private[2] = i; /* this write faults if the struct page is still shared */
	}
}
