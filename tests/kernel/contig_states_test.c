/*
 * Ranges and bad frames among blocks of every state: bare, full, and huge in mapped sections, where
 * struct pages have to be restored first. Each step fails once, and then the range must be as it
 * was.
 */
#include "kernel/core/printk.h"
#include "kernel/run/test.h"
#include "mm/contig/bad_frames.h"
#include "mm/contig/contig.h"
#include "mm/memmap/vmemmap.h"
#include "mm/page/migrate.h"
#include "mm/page/page_alloc.h"
#include "mm/page/pcp.h"
#include "mm/page/pcp_drain.h"
#include "mm/zone/section.h"
#include "mm/zone/transit.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/chain.h"
#include "tests/kernel/holder.h"
#include "tests/kernel/pool_check.h"

enum { RANGE = 4, BARE_AT = 32, FAULTS_MAX = 200 };

static u32 first; /* block of the range */

/*
 * Borrow 256 MiB, of which the second half is mapped and has free huge pages. They are made while
 * the first half has no free memory.
 */
static struct arena *borrow_with_huge_mapped(void)
{
	struct arena *a = arena_borrow(MIB(256));
	struct block_list bare = BLOCK_LIST_INIT;
	struct page *chain = NULL;

	if (!a)
		return NULL;
	/* Huge pages must stay huge, and the baselines restore freed ones. */
	pool_makes_on_demand();
	EXPECT_EQ(section_open_next(arena_zone(a, 0), SECTION_MAPPED), 0);
	block_take(arena_zone(a, 0), FREE_BARE, BLOCK_ORDER, ~0ULL, BLOCK_HUGE, &bare);
	chain_take(&chain, &a->mm, RANGE, BLOCK_ORDER, 0, 0);
	chain_give(&chain, &a->mm);
	block_list_publish_free(&a->mm, &bare);
	pcp_drain_all(&a->mm);
	first = arena_block(a) + SECTION_BLOCKS;
	while (first < arena_block(a) + 2 * SECTION_BLOCKS &&
	       (block_look_at(&a->mm, first).state != BLOCK_HUGE ||
		!(block_look_at(&a->mm, first).flags & BLOCK_MAPPED)))
		first++;
	if (first + RANGE > arena_block(a) + 2 * SECTION_BLOCKS)
		test_fail(__FILE__, __LINE__, "no free huge page in the mapped section");
	return a;
}

static struct arena *borrow_with_bare(void)
{
	struct arena *a = arena_borrow(MIB(256));

	if (!a)
		return NULL;
	first = arena_block(a) + BARE_AT;
	EXPECT_EQ(block_look_at(&a->mm, first).state, BLOCK_BARE);
	return a;
}

static bool is_isolated(struct arena *a)
{
	for (u32 i = first; i < first + RANGE; i++)
		if (block_is_isolated(block_at(&a->mm, i)))
			return true;
	return false;
}

/*
 * Take the range once with one failure. If the call failed, it is repeated. Returns true if the
 * failure was met.
 */
static bool take_with_fault(struct arena *a, u32 fault)
{
	bool met;
	int err;

	fail_arm(&a->mm.fail, FAIL_ANY, fault, FAIL_ONCE);
	err = mm_contig_alloc_range(&a->mm, block_pfn(first), RANGE * BLOCK_FRAMES);
	met = fail_disarm(&a->mm.fail);
	EXPECT(err == 0 || (met && (err == -EBUSY || err == -ENOMEM)));
	EXPECT_EQ(arena_usage(a).in_use, err ? 0 : RANGE * BLOCK_FRAMES);
	EXPECT(!is_isolated(a));
	EXPECT(arena_accounted(a));
	if (err)
		EXPECT_EQ(mm_contig_alloc_range(&a->mm, block_pfn(first), RANGE * BLOCK_FRAMES), 0);
	EXPECT_EQ(arena_usage(a).in_use, RANGE * BLOCK_FRAMES);
	mm_contig_free_range(&a->mm, block_pfn(first), RANGE * BLOCK_FRAMES);
	EXPECT_EQ(arena_usage(a).in_use, 0);
	EXPECT(arena_accounted(a));
	return met;
}

/* Repeat until a run meets no failure. Returns the number of places that failed. */
static u32 sweep(struct arena *(*borrow)(void))
{
	bool met = true;
	u32 fault;

	for (fault = 1; met && fault < FAULTS_MAX && !test_failed(); fault++) {
		struct arena *a = borrow();

		if (!a)
			return ~0U; /* the skip message says why */
		met = take_with_fault(a, fault);
		arena_return(a);
	}
	EXPECT(!met || test_failed());
	print("  # taking %u blocks: %u places failed, one at a time\n", (unsigned)RANGE,
	      fault - 2);
	return fault - 2;
}

TEST(mm_contig, every_failure_in_bare_memory_leaves_no_trace)
{
	/* isolating, taking, and making struct pages for all blocks */
	EXPECT(sweep(borrow_with_bare) >= 3);
}

TEST(mm_contig, every_failure_in_huge_memory_of_a_mapped_section_leaves_no_trace)
{
	EXPECT(sweep(borrow_with_huge_mapped) >= 3); /* also restoring */
}

/* The block's struct pages come back, and all frames but the bad one are free as before. */
TEST_ARENA(mm_bad, a_free_huge_page_of_a_mapped_section_is_split_around_it,
	   borrow_with_huge_mapped())
{
	struct page copy;
	const pfn_t pfn = block_pfn(first) + 77;
	const u64 free = arena_available(a) + arena_usage(a).meta + arena_usage(a).gated;

	EXPECT_EQ(mm_mark_bad(&a->mm, pfn), 0);
	EXPECT_EQ(block_look_at(&a->mm, first).state, BLOCK_FULL);
	EXPECT_EQ(arena_usage(a).bad, 1);
	EXPECT(mm_page_peek(&a->mm, pfn, &copy) && copy.flags & PAGE_BAD);
	EXPECT_EQ(arena_available(a) + arena_usage(a).meta + arena_usage(a).gated, free - 1);
}

/* Without frames to restore its struct pages, the range stays huge and free. */
TEST_ARENA(mm_contig, huge_memory_that_cannot_be_restored_stays_huge, borrow_with_huge_mapped())
{
	fail_arm(&a->mm.fail, FAIL_META, 1, FAIL_AGAIN);
	EXPECT_EQ(mm_contig_alloc_range(&a->mm, block_pfn(first), BLOCK_FRAMES), -ENOMEM);
	fail_disarm(&a->mm.fail);
	EXPECT_EQ(block_look_at(&a->mm, first).state, BLOCK_HUGE);
	EXPECT(!is_isolated(a));
	EXPECT(arena_accounted(a));
	EXPECT_EQ(mm_contig_alloc_range(&a->mm, block_pfn(first), BLOCK_FRAMES), 0);
	mm_contig_free_range(&a->mm, block_pfn(first), BLOCK_FRAMES);
}

/*
 * The head's block is full, and all others are bare. The frame of the head must lie where frames
 * live for ever, because no other metadata block should stay as long as the page.
 */
TEST_ARENA(mm_contig, a_gigabyte_whose_first_block_was_split_becomes_one_page,
	   arena_borrow(MIB(16), .phantom = GIB(1)))
{
	struct page *giga;
	pfn_t head;

	test_option("contig", "index"); /* the other searches read mapped sections only */
	arena_open_all(a);
	first = arena_phantom_block(a);
	EXPECT_EQ(mm_contig_alloc_range(&a->mm, block_pfn(first), BLOCK_FRAMES), 0);
	mm_contig_free_range(&a->mm, block_pfn(first), BLOCK_FRAMES);
	EXPECT_EQ(block_look_at(&a->mm, first).state, BLOCK_FULL);
	giga = mm_contig_alloc(&a->mm, GIGA_ORDER, 1);
	REQUIRE(giga);
	EXPECT_EQ(page_to_pfn(giga), block_pfn(first));
	EXPECT(page_order(giga) == GIGA_ORDER && giga->refcount == 1);
	EXPECT(huge_line_right(&a->mm, first, GIGA_ORDER) &&
	       huge_tails_right(&a->mm, first, GIGA_ORDER, 37));
	head = pte_pfn(pte_load(vmemmap_line(&a->mm, first)));
	EXPECT_EQ(block_of(&a->mm, head)->meta->kind, META_LASTING);
	EXPECT(arena_accounted(a));
	mm_page_free(&a->mm, giga);
}

/*
 * A page of the range was made movable meanwhile. The count of movable pages must drop with the
 * page.
 */
TEST_ARENA(mm_contig, a_range_with_a_movable_page_in_it_is_given_back, arena_borrow(MIB(8)))
{
	const pfn_t range = block_pfn(arena_block(a) + 2);

	EXPECT_EQ(mm_contig_alloc_range(&a->mm, range, BLOCK_FRAMES), 0);
	mm_page_set_movable(&a->mm, pfn_page(&a->mm, range + 100), &mover_refuses);
	mm_contig_free_range(&a->mm, range, BLOCK_FRAMES);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(arena_usage(a).in_use, 0);
}

/*
 * Another CPU is withdrawing bad frames at this moment. Nothing changes, and the caller may try
 * again.
 */
TEST_ARENA(mm_bad, while_another_cpu_withdraws_nothing_is_marked, arena_borrow(MIB(8)))
{
	const pfn_t bad = block_pfn(arena_block(a) + 2) + 5;

	atomic_store_relaxed(&a->mm.bad.withdrawing, 1u);
	EXPECT_EQ(mm_mark_bad(&a->mm, bad), -EAGAIN);
	EXPECT_EQ(bad_frames_withdraw(&a->mm), 0);
	EXPECT_EQ(arena_usage(a).bad, 0);
	atomic_store_relaxed(&a->mm.bad.withdrawing, 0u);
	EXPECT_EQ(mm_mark_bad(&a->mm, bad), 0);
}
