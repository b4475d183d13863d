/*
 * Gated frames: they are few at the end of a batch and never stay gated for ever. Also the cost for
 * an allocation that must wait for a round.
 */
#include <arch/clock.h>

#include "kernel/core/printk.h"
#include "kernel/core/shootdown.h"
#include "kernel/run/test.h"
#include "mm/hvo/hvo_unshare.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/upward.h"
#include "mm/page/page_alloc.h"
#include "mm/page/pcp_drain.h"
#include "tests/kernel/pool_check.h"

enum { FULL_BLOCKS = 120, GATED_EACH = 7, BOUND = 512, ALLOCATIONS = 200 };

static u64 bound(struct arena *a)
{
	return MAX(BOUND, a->options.bytes / PAGE_SIZE / 256);
}

/* A batch replaces 840 frames at once, which is more than may stay gated. */
TEST(mm_hvo, few_frames_are_gated_at_the_end_of_a_batch)
{
	struct arena *a = arena_borrow(MIB(64), .phantom = GIB(1));
	const struct hvo_mode *on = hvo_mode_find("on");

	if (!a)
		return;
	_Static_assert(FULL_BLOCKS * GATED_EACH > BOUND,
		       "a batch must be able to exceed the bound");
	for (unsigned turn = 0; turn < 3; turn++) {
		REQUIRE(full_blocks_make(a, FULL_BLOCKS));
		EXPECT_EQ(pool_grow_on(&a->pool, on, 1, GIB_BLOCKS), GIB_BLOCKS);
		EXPECT(arena_usage(a).gated <= bound(a));
		EXPECT_EQ(block_changes(&a->mm, BLOCK_FULL, BLOCK_HUGE), (turn + 1) * FULL_BLOCKS);
		EXPECT_EQ(pool_shrink(&a->pool, on, GIB_BLOCKS), GIB_BLOCKS);
		EXPECT(hvo_bare_free_huge(arena_phantom_zone(a), ~0ULL) > 0);
		meta_end_batch(&a->mm.node[0]);
		EXPECT(arena_usage(a).gated <= bound(a));
	}
	EXPECT(arena_accounted(a));
	arena_return(a);
}

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
TEST(mm_hvo, the_bound_of_gated_frames_starts_a_round)
{
	struct arena *a = arena_borrow(MIB(16));
	u64 before;

	if (!a)
		return;
	before = rounds_so_far();
	gate(a, BOUND);
	meta_end_batch(&a->mm.node[0]);
	EXPECT_EQ(arena_usage(a).gated, BOUND);
	EXPECT_EQ(rounds_so_far() - before, 0);
	gate(a, 1);
	meta_end_batch(&a->mm.node[0]);
	EXPECT_EQ(arena_usage(a).gated, 0);
	EXPECT_EQ(rounds_so_far() - before, 1);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/*
 * No CPU flushes, and metadata memory has nothing to grow into. The allocation that needs the
 * frames starts the round itself.
 */
TEST(mm_hvo, who_needs_gated_frames_starts_the_round)
{
	struct arena *a = arena_borrow(MIB(16));
	struct famine famine;
	u64 before;

	if (!a)
		return;
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
	EXPECT(arena_accounted(a));
	arena_return(a);
}

static void free_all(struct arena *a, struct page **page, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		mm_page_free(&a->mm, page[i]);
}

/*
 * All free memory is huge pages, so small pages need a round. One round serves a batch of blocks.
 */
TEST(mm_hvo, allocations_that_must_flush_share_the_round)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));
	static struct page *page[ALLOCATIONS];
	u64 worst = 0, sum = 0, before, most_rounds = 0;

	if (!a)
		return;
	EXPECT_EQ(pool_grow_on(&a->pool, hvo_mode_find("on"), 1, GIB_BLOCKS), GIB_BLOCKS);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_mode_find("on"), GIB_BLOCKS), GIB_BLOCKS);
	before = rounds_so_far();
	for (unsigned i = 0; i < ALLOCATIONS; i++) {
		const u64 start = clock_ns(), rounds = rounds_so_far();
		u64 ns;

		page[i] = mm_page_alloc(&a->mm, BLOCK_ORDER - 1, USE_MOVABLE, PAGE_NODE, 1);
		ns = clock_ns() - start;
		REQUIRE(page[i]);
		worst = MAX(worst, ns);
		sum += ns;
		most_rounds = MAX(most_rounds, rounds_so_far() - rounds);
	}
	EXPECT(rounds_so_far() - before >= 1);
	/* batches of 4, 8, 16, 32 and 64 blocks, and metadata memory grows twice */
	EXPECT(rounds_so_far() - before <= 5 + 2);
	EXPECT(most_rounds <= 1);
	print("  # allocation of 1 MiB when all memory is huge pages: worst %llu ns, mean %llu ns, "
	      "%llu rounds for %u\n",
	      worst, sum / ALLOCATIONS, rounds_so_far() - before, ALLOCATIONS);
	free_all(a, page, ALLOCATIONS);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/*
 * One small page makes few huge pages small, many small pages make more of them small at once, and
 * when blocks are whole again few are enough.
 */
TEST(mm_hvo, huge_pages_become_small_in_batches_that_double)
{
	enum { BLOCKS = 28 };
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));
	static struct page *page[2 * BLOCKS];

	if (!a)
		return;
	for (unsigned turn = 0; turn < 2; turn++) {
		const u64 before = block_changes(&a->mm, BLOCK_HUGE, BLOCK_FULL);

		EXPECT_EQ(pool_grow_on(&a->pool, hvo_mode_find("on"), 1, GIB_BLOCKS), GIB_BLOCKS);
		EXPECT_EQ(pool_shrink(&a->pool, hvo_mode_find("on"), GIB_BLOCKS), GIB_BLOCKS);
		for (unsigned i = 0; i < 2 * BLOCKS; i++) {
			const u64 made = block_changes(&a->mm, BLOCK_HUGE, BLOCK_FULL) - before,
				  split = DIV_ROUND_UP(i, 2);

			EXPECT(made <= 2 * split + SPLIT_BATCH_MIN);
			page[i] = mm_page_alloc(&a->mm, BLOCK_ORDER - 1, USE_MOVABLE, PAGE_NODE, 1);
			REQUIRE(page[i]);
		}
		EXPECT(block_changes(&a->mm, BLOCK_HUGE, BLOCK_FULL) - before >= BLOCKS / 2);
		free_all(a, page, 2 * BLOCKS);
	}
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* A pool born at boot takes pages back that were small in the meantime. */
TEST(mm_hvo, what_was_split_can_be_a_page_of_every_mode_again)
{
	enum { PAGES = 64 };
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));
	const struct hvo_mode *preinit = hvo_mode_find("preinit");
	static struct page *page[PAGES];
	u64 all;

	if (!a)
		return;
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
	EXPECT(arena_accounted(a));
	arena_return(a);
}
