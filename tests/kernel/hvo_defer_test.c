/*
 * Pages made of blocks that were split before: one round for a batch, at once or when somebody wants the first of them. And
 * batches that several CPUs share.
 */
#include <arch/tlb.h>

#include "kernel/shootdown.h"
#include "kernel/test.h"
#include "mm/meta.h"
#include "mm/page_alloc.h"
#include "mm/transit.h"
#include "tests/kernel/pool_check.h"

extern bool tlb_broadcast; /* invlpgb= */

/* `count` full blocks of the phantom are made huge; the rounds that takes. */
static u64 rounds_to_convert(struct arena *a, u64 count, const struct hvo_mode *mode, struct block_list *list)
{
	u64 before;

	EXPECT(full_blocks_make(a, count));
	EXPECT_EQ(block_take(arena_phantom_zone(a), FREE_FULL, BLOCK_ORDER, count, BLOCK_HUGE, list), count);
	before = rounds_so_far();
	EXPECT_EQ(hvo_optimise(&a->mm, mode, list), 0);
	EXPECT_EQ(arena_usage(a).gated, count * 7); /* seven frames of each */
	return rounds_so_far() - before;
}

TEST(mm_hvo, recycled_blocks_take_one_round_however_many)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));
	struct block_list list = BLOCK_LIST_INIT;
	struct hvo_mode at_once = *hvo_mode_find("on");
	u64 before;

	if (!a)
		return;
	at_once.defer = false;
	EXPECT_EQ(rounds_to_convert(a, 24, &at_once, &list), 1);
	EXPECT(huge_tails_right(&a->mm, list.head, BLOCK_ORDER, 1));
	before = rounds_so_far();
	meta_settle(&a->mm.node[0]);
	EXPECT_EQ(arena_usage(a).gated, 0); /* the round was theirs too */
	hvo_settle(&a->mm, list.head);
	EXPECT_EQ(rounds_so_far() - before, 0);
	block_list_publish_free(&a->mm, &list);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_hvo, the_round_waits_until_a_page_is_wanted_and_serves_the_whole_batch)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));
	struct block_list list = BLOCK_LIST_INIT;
	u64 before;

	if (!a)
		return;
	EXPECT_EQ(rounds_to_convert(a, 24, hvo_mode_find("on"), &list), 0);
	before = rounds_so_far();
	for (u32 index = list.head; index != BLOCK_NONE; index = block_at(&a->mm, index)->next) {
		hvo_settle(&a->mm, index);
		EXPECT_EQ(rounds_so_far() - before, 1);
		EXPECT(huge_tails_right(&a->mm, index, BLOCK_ORDER, 1));
	}
	meta_settle(&a->mm.node[0]);
	EXPECT_EQ(arena_usage(a).gated, 0);
	EXPECT_EQ(rounds_so_far() - before, 1);
	block_list_publish_free(&a->mm, &list);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* Two batches, put into the pool and the buddy: whoever takes the first page starts the one round for both. */
TEST(mm_hvo, a_page_is_given_out_after_its_round)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));
	const struct hvo_mode *on = hvo_mode_find("on");
	struct page *page;
	u64 before;

	if (!a)
		return;
	REQUIRE(full_blocks_make(a, 30));
	before = rounds_so_far();
	EXPECT_EQ(pool_grow_on(&a->pool, on, 1, GIB_BLOCKS), GIB_BLOCKS); /* the full ones last: these are huge now */
	EXPECT_EQ(block_changes(&a->mm, BLOCK_FULL, BLOCK_HUGE), 30);
	EXPECT_EQ(pool_shrink_on(&a->pool, on, 1, GIB_BLOCKS), GIB_BLOCKS);
	EXPECT_EQ(rounds_so_far() - before, 0);
	for (unsigned i = 0; i < GIB_BLOCKS; i++) {
		page = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, PAGE_NODE, 1);
		REQUIRE(page);
		EXPECT(huge_tails_right(&a->mm, (u32)(page_to_pfn(page) >> BLOCK_ORDER), BLOCK_ORDER, 1));
	}
	EXPECT_EQ(rounds_so_far() - before, 1);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_hvo, the_pool_gives_a_page_out_after_its_round)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));
	const struct hvo_mode *on = hvo_mode_find("on");
	u64 before;

	if (!a)
		return;
	REQUIRE(full_blocks_make(a, 30));
	before = rounds_so_far();
	EXPECT_EQ(pool_grow_on(&a->pool, on, 1, GIB_BLOCKS), GIB_BLOCKS);
	EXPECT_EQ(rounds_so_far() - before, 0);
	for (unsigned i = 0; i < GIB_BLOCKS; i++) {
		struct page *page = pool_page_take(&a->pool, 1, POOL_ANY);

		REQUIRE(page);
		EXPECT(huge_tails_right(&a->mm, (u32)(page_to_pfn(page) >> BLOCK_ORDER), BLOCK_ORDER, 1));
	}
	EXPECT_EQ(rounds_so_far() - before, 1);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* With one instruction for everybody, where there is one: the hosted machine's watcher believes it, and nothing else. */
TEST(mm_hvo, a_broadcast_round_is_as_good_as_any)
{
	struct arena *a;
	struct block_list list = BLOCK_LIST_INIT;
	struct hvo_mode at_once = *hvo_mode_find("on");

	if (!tlb_can_broadcast())
		SKIP("this CPU has no INVLPGB");
	a = arena_borrow(MIB(16), .phantom = GIB(1));
	if (!a)
		return;
	at_once.defer = false;
	tlb_broadcast = true;
	EXPECT_EQ(rounds_to_convert(a, 24, &at_once, &list), 1);
	meta_settle(&a->mm.node[0]);
	EXPECT_EQ(arena_usage(a).gated, 0);
	block_list_publish_free(&a->mm, &list);
	EXPECT(full_blocks_make(a, 30)); /* takes the frames again */
	tlb_broadcast = false;
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* Many pages are divided among CPUs; what comes of it is the same. */
TEST(mm_hvo, a_batch_divided_among_cpus_is_complete_and_in_order)
{
	struct arena *a = arena_borrow(MIB(32), .phantom = GIB(4));
	const struct hvo_mode *on = hvo_mode_find("on");
	u64 pages = 0;

	if (!a)
		return;
	EXPECT_EQ(pool_grow_on(&a->pool, on, 1, 4 * GIB_BLOCKS), 4 * GIB_BLOCKS);
	EXPECT_EQ(block_changes(&a->mm, BLOCK_BARE, BLOCK_HUGE), 4 * GIB_BLOCKS);
	for (u32 index = a->pool.node[1].free.head; index != BLOCK_NONE; index = block_at(&a->mm, index)->next) {
		const struct page *head = pfn_page(&a->mm, block_pfn(index));

		if (head->refcount != 0 || page_head(head + 1) != head || page_head(head + 511) != head)
			test_fail(__FILE__, __LINE__, "block %u has a head or tail that is not right", index);
		pages++;
	}
	EXPECT_EQ(pages, 4 * GIB_BLOCKS);
	EXPECT(arena_accounted(a));
	EXPECT_EQ(pool_shrink_on(&a->pool, on, 1, 4 * GIB_BLOCKS), 4 * GIB_BLOCKS);
	EXPECT(arena_accounted(a));
	arena_return(a);
}
