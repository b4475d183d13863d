/* Gated frames: they are few at the end of a batch and never stay gated for ever. */

#include "kernel/core/shootdown.h"
#include "kernel/run/test.h"
#include "mm/hvo/hvo_unshare.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/upward.h"
#include "mm/page/page_alloc.h"
#include "mm/page/pcp_drain.h"
#include "tests/kernel/pool_check.h"

enum { BOUND = 512 };

/*
 * Gate frames for a round that no CPU has started: take them from metadata memory and give them
 * back with a tag.
 */
static void gate(struct arena *a, unsigned count)
{
	struct node *node = &a->mm.node[0];
	static pfn_t frame[2 * BOUND];

	EXPECT_EQ(meta_reserve(node, META_TAILS, count), 0);
	for (unsigned i = 0; i < count; i++)
		frame[i] = meta_take(node, META_TAILS);
	for (unsigned i = 0; i < count; i++)
		meta_give(&a->mm, frame[i], shootdown_tag());
}

/* Up to the bound, frames wait for any CPU's round. With one more, the batch starts a round. */
TEST_ARENA(mm_hvo, the_bound_of_gated_frames_starts_a_round, arena_borrow(MIB(16)))
{
	const u64 before = rounds_so_far();

	gate(a, BOUND);
	meta_end_batch(&a->mm.node[0]);
	EXPECT_EQ(arena_usage(a).gated, BOUND);
	EXPECT_EQ(rounds_so_far() - before, 0);
	gate(a, 1);
	meta_end_batch(&a->mm.node[0]);
	EXPECT_EQ(arena_usage(a).gated, 0);
	EXPECT_EQ(rounds_so_far() - before, 1);
}

/*
 * No CPU flushes, and metadata memory has nothing to grow into. The allocation that needs the
 * frames starts the round itself.
 */
TEST_ARENA(mm_hvo, who_needs_gated_frames_starts_the_round, arena_borrow(MIB(16)))
{
	struct famine famine;
	u64 before;

	REQUIRE(meta_reserve(&a->mm.node[0], META_TAILS, 1) ==
		0); /* Metadata memory gets a block for tails */
	meta_unreserve(&a->mm.node[0], META_TAILS, 1);
	famine_begin(&famine, a, META_TAILS, 100);
	gate(a, 100);
	before = rounds_so_far();
	EXPECT_EQ(meta_reserve_now(&a->mm.node[0], META_TAILS, 8), -ENOMEM);
	EXPECT_EQ(rounds_so_far() - before, 0);
	EXPECT_EQ(meta_reserve(&a->mm.node[0], META_TAILS, 8), 0);
	EXPECT_EQ(rounds_so_far() - before, 1);
	meta_unreserve(&a->mm.node[0], META_TAILS, 8);
	famine_end(&famine);
}

static void free_all(struct arena *a, struct page **page, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		mm_page_free(&a->mm, page[i]);
}

/* A pool born at boot takes pages back that were small in the meantime. */
TEST_ARENA(mm_hvo, what_was_split_can_be_a_page_of_every_mode_again,
	   arena_borrow(MIB(16), .phantom = GIB(1)))
{
	enum { PAGES = 64 };
	const struct hvo_mode *preinit = hvo_mode_find("preinit");
	static struct page *page[PAGES];
	u64 all;

	EXPECT_EQ(pool_grow_on(&a->pool, hvo_mode_find("on"), 1, GIB_BLOCKS), GIB_BLOCKS);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_mode_find("on"), GIB_BLOCKS), GIB_BLOCKS);
	all = pool_grow_on(&a->pool, preinit, 1, GIB_BLOCKS);
	EXPECT(all > PAGES);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_mode_find("on"), all), all);
	for (unsigned i = 0; i < PAGES; i++) {
		page[i] = mm_page_alloc(&a->mm, BLOCK_ORDER - 1, USE_MOVABLE, PAGE_NODE, 1);
		REQUIRE(page[i]);
	}
	free_all(a, page, PAGES);
	pcp_drain_all(&a->mm);
	/* metadata memory may have taken a block or two */
	EXPECT(pool_grow_on(&a->pool, preinit, 1, GIB_BLOCKS) + 2 >= all);
}
