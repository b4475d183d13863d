/*
 * Metadata memory: frames for struct pages and tables are reserved before they are needed, and
 * gated after they were used.
 */
#include "mm/memmap/meta.h"

#include "kernel/core/shootdown.h"
#include "kernel/lib/string.h"
#include "kernel/run/test.h"
#include "mm/zone/buddy.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/cpus.h"

static u64 reserved_frames(const struct meta *meta)
{
	u64 sum = 0;

	for (enum meta_kind kind = 0; kind < META_KINDS; kind++)
		sum += meta->reserved[kind];
	return sum;
}

TEST(mm_meta, frames_are_reserved_taken_and_given)
{
	struct arena *a = arena_borrow(MIB(2));
	struct node *node;
	u64 used, available;
	pfn_t pfn;

	if (!a)
		return;
	node = &a->mm.node[0];
	used = node->meta.used;
	available = node->meta.free[META_LASTING];
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
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_meta, the_lowest_frame_goes_first)
{
	struct arena *a = arena_borrow(MIB(2));
	struct node *node;
	pfn_t pfn[8];

	if (!a)
		return;
	node = &a->mm.node[0];
	REQUIRE(meta_reserve_now(node, META_LASTING, 8) == 0);
	for (unsigned i = 0; i < 8; i++)
		pfn[i] = meta_take(node, META_LASTING);
	for (unsigned i = 1; i < 8; i++)
		EXPECT(pfn[i] > pfn[i - 1]);
	meta_give(&a->mm, pfn[5], 0);
	meta_give(&a->mm, pfn[2], 0);
	REQUIRE(meta_reserve_now(node, META_LASTING, 1) == 0);
	EXPECT_EQ(meta_take(node, META_LASTING), pfn[2]);
	arena_return(a);
}

/*
 * The first of two blocks has a free frame, and the hint is empty, as after a block was added or
 * removed. A frame given back to the second block must not hide the one in the first.
 */
TEST(mm_meta, a_frame_given_back_hides_none_below_it)
{
	struct arena *a = arena_borrow(MIB(16));
	static pfn_t pfn[2 * BLOCK_FRAMES];
	unsigned count = 0;
	struct node *node;

	if (!a)
		return;
	node = &a->mm.node[0];
	do {
		REQUIRE(count < ARRAY_LEN(pfn) && meta_reserve(node, META_LASTING, 1) == 0);
		pfn[count++] = meta_take(node, META_LASTING);
	} while (pfn[count - 1] >> BLOCK_ORDER == pfn[0] >> BLOCK_ORDER);
	meta_give(&a->mm, pfn[0], 0);
	node->meta.hint[META_LASTING] = NULL;
	meta_give(&a->mm, pfn[count - 1], 0);
	REQUIRE(meta_reserve_now(node, META_LASTING, 1) == 0);
	EXPECT_EQ(meta_take(node, META_LASTING), pfn[0]);
	arena_return(a);
}

/* Take all frames of a kind and put them back. Was `wanted` among them? */
static bool can_take(struct arena *a, enum meta_kind kind, pfn_t wanted)
{
	static pfn_t taken[2 * BLOCK_FRAMES];
	unsigned count = 0;
	bool found = false;

	while (count < ARRAY_LEN(taken) && meta_reserve_now(&a->mm.node[0], kind, 1) == 0)
		taken[count++] = meta_take(&a->mm.node[0], kind);
	for (unsigned i = 0; i < count; i++) {
		found |= taken[i] == wanted;
		meta_give(&a->mm, taken[i], 0);
	}
	return found;
}

TEST(mm_meta, a_frame_waits_for_the_generation_of_its_tag)
{
	struct arena *a = arena_borrow(MIB(2));
	struct node *node;
	pfn_t pfn;
	u64 tag;

	if (!a)
		return;
	node = &a->mm.node[0];
	REQUIRE(meta_reserve_now(node, META_LASTING, 1) == 0);
	pfn = meta_take(node, META_LASTING);
	tag = shootdown_tag();
	EXPECT(tag > shootdown_done());
	meta_give(&a->mm, pfn, tag);
	EXPECT_EQ(arena_usage(a).gated, 1);
	meta_release_done(node);
	EXPECT_EQ(arena_usage(a).gated, 1);
	EXPECT(!can_take(a, META_LASTING, pfn));
	EXPECT(arena_accounted(a)); /* gated frames have an owner of their own */
	shootdown_full(SHOOTDOWN_SKIP_IDLE);
	meta_release_done(node);
	EXPECT_EQ(arena_usage(a).gated, 0);
	EXPECT(can_take(a, META_LASTING, pfn));
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_meta, too_many_frames_reserve_none)
{
	struct arena *a = arena_borrow(MIB(2), .phantom = GIB(1));
	struct node *node;

	if (!a)
		return;
	node = &a->mm.node[0];
	EXPECT_EQ(meta_reserve(node, META_LASTING, BLOCK_FRAMES), -ENOMEM);
	EXPECT_EQ(meta_reserve(node, META_TAILS, 1), -ENOMEM);
	EXPECT_EQ(reserved_frames(&node->meta), 0);
	EXPECT_EQ(node->meta.blocks, 1);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_meta, the_last_frames_are_kept_for_growing)
{
	struct arena *a = arena_borrow(MIB(2));
	struct node *node;
	u64 available;

	if (!a)
		return;
	node = &a->mm.node[0];
	available = node->meta.free[META_LASTING];
	EXPECT_EQ(meta_reserve_now(node, META_LASTING, available - META_EMERGENCY + 1), -ENOMEM);
	EXPECT_EQ(meta_reserve_now(node, META_LASTING, available - META_EMERGENCY), 0);
	EXPECT_EQ(meta_reserve_now(node, META_LASTING, 1), -ENOMEM);
	EXPECT_EQ(meta_reserve_emergency(node, META_EMERGENCY), 0);
	EXPECT_EQ(meta_reserve_emergency(node, 1), -ENOMEM);
	meta_unreserve(node, META_LASTING, available);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_meta, it_grows_by_a_block_and_gives_it_back)
{
	struct arena *a = arena_borrow(MIB(16));
	struct node *node;
	u64 blocks, available;

	if (!a)
		return;
	node = &a->mm.node[0];
	blocks = node->meta.blocks;
	available = arena_available(a);
	EXPECT_EQ(meta_reserve(node, META_LASTING, 700), 0);
	EXPECT_EQ(node->meta.blocks, blocks + 1);
	EXPECT_EQ(arena_available(a), available - BLOCK_FRAMES);
	meta_unreserve(node, META_LASTING, 700);
	meta_end_batch(node);
	EXPECT_EQ(node->meta.blocks, blocks);
	EXPECT_EQ(arena_available(a), available);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* Heads have reserved frames of a block of the other kind, so that block is not given back. */
TEST(mm_meta, a_block_that_heads_have_reserved_stays)
{
	enum { HEADS = 600 };
	static pfn_t pfn[HEADS];
	struct arena *a = arena_borrow(MIB(16));
	struct node *node;

	if (!a)
		return;
	node = &a->mm.node[0];
	REQUIRE(meta_reserve(node, META_LASTING, 700) == 0);
	meta_unreserve(node, META_LASTING, 700);
	REQUIRE(meta_reserve_now(node, META_HEADS, HEADS) == 0);
	meta_end_batch(node);
	EXPECT(node->meta.free[META_HEADS] + node->meta.free[META_LASTING] >= HEADS);
	if (!test_failed()) {
		meta_take_many(node, META_HEADS, pfn, HEADS);
		meta_give_many(&a->mm, pfn, HEADS, 0);
	}
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* Kinds never share a block, so that long-lived frames do not pin blocks of tails. */
TEST(mm_meta, kinds_do_not_mix)
{
	struct arena *a = arena_borrow(MIB(16));
	struct node *node;
	pfn_t tail, head;

	if (!a)
		return;
	node = &a->mm.node[0];
	REQUIRE(meta_reserve(node, META_TAILS, 1) == 0);
	REQUIRE(meta_reserve(node, META_LASTING, 1) == 0);
	tail = meta_take(node, META_TAILS);
	head = meta_take(node, META_LASTING);
	EXPECT(tail >> BLOCK_ORDER != head >> BLOCK_ORDER);
	meta_give(&a->mm, tail, 0);
	meta_give(&a->mm, head, 0);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_meta, frames_of_a_run_are_neighbours)
{
	struct arena *a = arena_borrow(MIB(2));
	struct node *node;
	pfn_t single[6], run;

	if (!a)
		return;
	node = &a->mm.node[0];
	REQUIRE(meta_reserve_now(node, META_LASTING, 6) == 0);
	for (unsigned i = 0; i < 6; i++)
		single[i] = meta_take(node, META_LASTING);
	meta_give(&a->mm, single[1], 0); /* the holes are too small for the run */
	meta_give(&a->mm, single[3], 0);
	meta_give(&a->mm, single[4], 0);
	run = meta_take_run(node, 4);
	EXPECT(run > single[5]);
	EXPECT_EQ(meta_take_run(node, BLOCK_FRAMES), PFN_NONE);
	/* the first hole that is large enough */
	EXPECT_EQ(meta_take_run(node, 2), single[3]);
	arena_return(a);
}

/* Tries that fail now and then make a reservation fail, or take another turn, but not for ever. */
TEST(mm_meta, a_reservation_ends_whichever_tries_fail)
{
	struct arena *a = arena_borrow(MIB(32));
	struct node *node;

	if (!a)
		return;
	node = &a->mm.node[0];
	for (u32 every = 1; every <= 8; every++) {
		int err;

		fail_arm(&a->mm.fail, FAIL_META, every, FAIL_AGAIN);
		err = meta_reserve(node, META_LASTING, 5);
		fail_disarm(&a->mm.fail);
		EXPECT(err == 0 || err == -ENOMEM);
		if (err == 0)
			meta_unreserve(node, META_LASTING, 5);
	}
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* Each block needs a descriptor, and these come in frames that only growth may use. */
TEST(mm_meta, growing_for_heads_restores_the_frames_that_growing_needs)
{
	enum { BLOCKS = 14 };
	struct arena *a = arena_borrow(MIB(64));
	struct node *node;
	u64 held = 0;

	if (!a)
		return;
	node = &a->mm.node[0];
	while (meta_reserve_now(node, META_LASTING, 1) == 0)
		held++;
	for (unsigned i = 0; i < META_EMERGENCY - 1; i++, held++)
		EXPECT_EQ(meta_reserve_emergency(node, 1), 0);
	EXPECT_EQ(meta_reserve(node, META_HEADS, BLOCKS * BLOCK_FRAMES), 0);
	EXPECT(meta_has(node, META_LASTING, 0));
	meta_unreserve(node, META_HEADS, BLOCKS * BLOCK_FRAMES);
	meta_unreserve(node, META_LASTING, held);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* ---- all CPUs ---- */

enum { TURNS = 40, HELD = 4 };

struct rivalry {
	struct arena *a;
	u32 stolen, refused;
};

/* Mark each frame taken; it must still have the mark when it is given back. */
static void take_mark_and_give(void *arg)
{
	struct rivalry *r = arg;
	struct node *node = &r->a->mm.node[0];
	pfn_t held[HELD];

	for (u64 turn = 0; turn < TURNS; turn++) {
		const enum meta_kind kind = turn % 2 ? META_TAILS : META_LASTING;
		const u64 mark = (u64)(virt_t)&held ^ turn;

		if (meta_reserve(node, kind, HELD) < 0) {
			atomic_fetch_add(&r->refused, 1);
			continue;
		}
		for (unsigned i = 0; i < HELD; i++) {
			held[i] = meta_take(node, kind);
			*(volatile u64 *)phys_to_virt(held[i] << PAGE_SHIFT) = mark + i;
		}
		for (unsigned i = 0; i < HELD; i++) {
			if (*(volatile u64 *)phys_to_virt(held[i] << PAGE_SHIFT) != mark + i)
				atomic_fetch_add(&r->stolen, 1);
			meta_give(&r->a->mm, held[i], i % 4 ? 0 : shootdown_tag());
		}
		if (turn % 16 == 0)
			meta_end_batch(node);
	}
}

TEST(mm_meta, no_frame_has_two_holders)
{
	struct rivalry r = {.a = arena_borrow(MIB(16))};

	if (!r.a)
		return;
	cpus_run_together(take_mark_and_give, &r);
	EXPECT_EQ(r.stolen, 0);
	EXPECT_EQ(r.refused, 0);
	meta_flush_gated(&r.a->mm.node[0]);
	EXPECT_EQ(reserved_frames(&r.a->mm.node[0].meta), 0);
	EXPECT(arena_accounted(r.a));
	arena_return(r.a);
}
