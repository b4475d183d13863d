/*
 * Metadata memory: frames for struct pages and tables are reserved before they are needed, and
 * gated after they were used.
 */
#include "mm/memmap/meta.h"

#include "kernel/lib/string.h"
#include "kernel/run/test.h"
#include "mm/zone/buddy.h"
#include "tests/kernel/arena.h"

TEST_ARENA(mm_meta, frames_are_reserved_taken_and_given, arena_borrow(MIB(2)))
{
	pfn_t pfn;
	struct node *node = &a->mm.node[0];
	const u64 used = node->meta.used;
	const u64 available = node->meta.free[META_LASTING];

	EXPECT_EQ(meta_reserve_now(node, META_LASTING, 3), 0);
	EXPECT_EQ(node->meta.reserved[META_LASTING], 3);
	pfn = meta_take(node, META_LASTING);
	EXPECT_EQ(pfn >> BLOCK_ORDER, arena_block(a));
	EXPECT_EQ(node->meta.used, used + 1);
	EXPECT_EQ(node->meta.reserved[META_LASTING], 2);
	meta_unreserve(node, META_LASTING, 2);
	meta_give(&a->mm, pfn, 0);
	EXPECT_EQ(node->meta.used, used);
	EXPECT_EQ(node->meta.free[META_LASTING], available);
}

/*
 * The first of two blocks has a free frame, and the hint is empty, as after a block was added or
 * removed. A frame given back to the second block must not hide the one in the first.
 */
TEST_ARENA(mm_meta, a_frame_given_back_hides_none_below_it, arena_borrow(MIB(16)))
{
	static pfn_t pfn[2 * BLOCK_FRAMES];
	unsigned count = 0;
	struct node *node = &a->mm.node[0];

	do {
		REQUIRE(count < ARRAY_LEN(pfn) && meta_reserve(node, META_LASTING, 1) == 0);
		pfn[count++] = meta_take(node, META_LASTING);
	} while (pfn[count - 1] >> BLOCK_ORDER == pfn[0] >> BLOCK_ORDER);
	meta_give(&a->mm, pfn[0], 0);
	node->meta.hint[META_LASTING] = NULL;
	meta_give(&a->mm, pfn[count - 1], 0);
	REQUIRE(meta_reserve_now(node, META_LASTING, 1) == 0);
	EXPECT_EQ(meta_take(node, META_LASTING), pfn[0]);
	arena_return(a); /* nothing refers to the frames that were taken */
}

/* Heads have reserved frames of a block of the other kind, so that block is not given back. */
TEST_ARENA(mm_meta, a_block_that_heads_have_reserved_stays, arena_borrow(MIB(16)))
{
	enum { HEADS = 600 };
	static pfn_t pfn[HEADS];
	struct node *node = &a->mm.node[0];

	REQUIRE(meta_reserve(node, META_LASTING, 700) == 0);
	meta_unreserve(node, META_LASTING, 700);
	REQUIRE(meta_reserve_now(node, META_HEADS, HEADS) == 0);
	meta_end_batch(node);
	EXPECT(node->meta.free[META_HEADS] + node->meta.free[META_LASTING] >= HEADS);
	if (!test_failed()) {
		meta_take_many(node, META_HEADS, pfn, HEADS);
		meta_give_many(&a->mm, pfn, HEADS, 0);
	}
}

/* Tries that fail now and then make a reservation fail, or take another turn, but not for ever. */
TEST_ARENA(mm_meta, a_reservation_ends_whichever_tries_fail, arena_borrow(MIB(32)))
{
	struct node *node = &a->mm.node[0];

	for (u32 every = 1; every <= 8; every++) {
		int err;

		fail_arm(&a->mm.fail, FAIL_META, every, FAIL_AGAIN);
		err = meta_reserve(node, META_LASTING, 5);
		fail_disarm(&a->mm.fail);
		EXPECT(err == 0 || err == -ENOMEM);
		if (err == 0)
			meta_unreserve(node, META_LASTING, 5);
	}
}

/* Each block needs a descriptor, and these come in frames that only growth may use. */
TEST_ARENA(mm_meta, growing_for_heads_restores_the_frames_that_growing_needs, arena_borrow(MIB(64)))
{
	enum { BLOCKS = 14 };
	u64 held = 0;
	struct node *node = &a->mm.node[0];

	while (meta_reserve_now(node, META_LASTING, 1) == 0)
		held++;
	for (unsigned i = 0; i < META_EMERGENCY - 1; i++, held++)
		EXPECT_EQ(meta_reserve_emergency(node, 1), 0);
	EXPECT_EQ(meta_reserve(node, META_HEADS, BLOCKS * BLOCK_FRAMES), 0);
	EXPECT(meta_has(node, META_LASTING, 0));
	meta_unreserve(node, META_HEADS, BLOCKS * BLOCK_FRAMES);
	meta_unreserve(node, META_LASTING, held);
}
