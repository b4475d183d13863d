/*
 * 1 GiB pages, which need one head frame and eight tables where other pages need 4096 frames. They
 * are made, freed, used for small pages, and split into 512 pages of 2 MiB.
 *
 *   HUGE      [head RW][shared tail of order 18, RO, x7]
 *   NOHEAD    [the same tail x8]  x511
 */
#include "mm/hugetlb/pool_use.h"
#include "tests/kernel/mm_test.h"

enum {
	/* 4096 frames, less one head and eight tables */
	SAVED_1G = 4087,
	SAVED_512 = GIB_BLOCKS * 7 - GIB_SECTIONS, /* the same GiB as 512 pages of 2 MiB */
	HEADS = GIB_BLOCKS,                        /* new heads that a demotion needs */
	/* step between the tails that are checked beyond each block's first 64 */
	STEP = 37,
};

/* The first free page of the first node that has one. */
static u32 first_free(const struct pool *pool)
{
	for (node_t n = 0; n < pool->mm->nodes; n++)
		if (pool->node[n].free.head != BLOCK_NONE)
			return pool->node[n].free.head;
	return BLOCK_NONE;
}

static void expect_giga_states(const struct mm *mm, u32 index)
{
	EXPECT_EQ(index % GIB_BLOCKS, 0);
	EXPECT_EQ(block_look_at(mm, index).state, BLOCK_HUGE);
	EXPECT_EQ(block_look_at(mm, index).order, GIGA_ORDER);
	for (u32 i = 1; i < GIB_BLOCKS; i++)
		if (block_look_at(mm, index + i).state != BLOCK_NOHEAD)
			test_fail(__FILE__, __LINE__, "block %u of a 1 GiB page is %s", i,
				  block_state_name(block_look_at(mm, index + i).state));
}

static void expect_giga(struct mm *mm, u32 index)
{
	expect_giga_states(mm, index);
	EXPECT(huge_line_right(mm, index, GIGA_ORDER));
	EXPECT(huge_tails_right(mm, index, GIGA_ORDER, STEP));
}

/* Every page of the 2 MiB pool has its own head and tails. */
static void expect_small_pages_right(struct pool *pool)
{
	for (node_t n = 0; n < pool->mm->nodes; n++)
		block_list_foreach(pool->mm, i, &pool->node[n].free)
			if (!huge_line_right(pool->mm, i, BLOCK_ORDER) ||
			    !huge_tails_right(pool->mm, i, BLOCK_ORDER, STEP))
				return;
}

/* ---- demotion ---- */

TEST_ARENA(mm_giga, a_batch_is_made_without_a_round_and_demoted_with_one,
	   arena_borrow(MIB(16), .phantom = GIB(2)))
{
	u64 before = rounds_so_far();

	EXPECT_EQ(pool_grow(&a->giga, hvo_on(), 2), 2); /* of memory never opened */
	EXPECT_EQ(pool_frames_saved(&a->giga), 2 * SAVED_1G);
	expect_giga(&a->mm, first_free(&a->giga));
	EXPECT(arena_accounted(a));
	EXPECT_EQ(pool_shrink(&a->giga, hvo_on(), 2), 2);
	EXPECT_EQ(arena_phantom_zone(a)->free_class[FREE_HUGE], 2 * order_pages(GIGA_ORDER));
	EXPECT_EQ(pool_grow(&a->giga, hvo_on(), 3), 2); /* the pages are taken as they are */
	EXPECT_EQ(rounds_so_far() - before, 0);
	before = rounds_so_far();
	EXPECT_EQ(pool_demote(&a->giga, &a->pool, hvo_on(), 2), 2);
	EXPECT_EQ(rounds_so_far() - before, 1);
	EXPECT_EQ(a->giga.pages, 0);
	EXPECT_EQ(a->pool.free, 2 * GIB_BLOCKS);
	EXPECT_EQ(pool_frames_saved(&a->pool), 2 * SAVED_512);
	EXPECT_EQ(mm_counted(&a->mm, COUNT_CHANGE(BLOCK_BARE, BLOCK_HUGE)), 2 + 2 * GIB_BLOCKS);
	expect_small_pages_right(&a->pool);
	EXPECT(arena_accounted(a));
	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), 2 * GIB_BLOCKS), 2 * GIB_BLOCKS);
	EXPECT_EQ(hvo_bare_free_huge(arena_phantom_zone(a), ~0ULL), 2 * GIB_BLOCKS);
	EXPECT_EQ(pool_grow(&a->giga, hvo_on(), 2), 2); /* the bare blocks are one piece again */
	expect_giga(&a->mm, first_free(&a->giga));
}

TEST_ARENA(mm_giga, free_ones_are_taken_apart_for_2m_pages,
	   arena_borrow(MIB(16), .phantom = GIB(2)))
{
	struct page *page;

	EXPECT_EQ(pool_grow(&a->giga, hvo_on(), 2), 2);
	EXPECT_EQ(pool_shrink(&a->giga, hvo_on(), 2), 2);
	page = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, PAGE_NODE, 1);
	REQUIRE(page);
	/* One 1 GiB page was enough. */
	EXPECT_EQ(arena_phantom_zone(a)->free_class[FREE_HUGE], order_pages(GIGA_ORDER));
	EXPECT_EQ(pool_grow_on(&a->pool, hvo_on(), 1, 2 * GIB_BLOCKS), 2 * GIB_BLOCKS - 1);
	expect_small_pages_right(&a->pool);
	EXPECT_EQ(pool_shrink_on(&a->pool, hvo_on(), 1, 2 * GIB_BLOCKS - 1), 2 * GIB_BLOCKS - 1);
	mm_page_free(&a->mm, page);
}

/* Metadata memory grows now and not during the demotions, which find frames for `heads` heads. */
static void famine_of_heads(struct famine *famine, struct arena *a, u64 heads)
{
	EXPECT_EQ(meta_reserve(&a->mm.node[0], META_LASTING, 2 * HEADS), 0);
	meta_unreserve(&a->mm.node[0], META_LASTING, 2 * HEADS);
	famine_begin(famine, a, META_LASTING, heads);
}

/* With 510 heads, one too few, the page stays usable as it is. With 511 heads it is demoted. */
TEST_ARENA(mm_giga, demotion_does_what_heads_reach_for, arena_borrow(MIB(16), .phantom = GIB(2)))
{
	struct famine famine;
	u64 before;
	u32 first;

	EXPECT_EQ(pool_grow(&a->giga, hvo_on(), 2), 2);
	famine_of_heads(&famine, a, HEADS - 1);
	before = rounds_so_far();
	EXPECT_EQ(pool_demote(&a->giga, &a->pool, hvo_on(), 2), 0);
	first = first_free(&a->giga);
	EXPECT_EQ(pool_demote(&a->giga, &a->pool, hvo_on(), 1), 0);
	EXPECT(first_free(&a->giga) != first); /* the other one is tried next */
	EXPECT_EQ(rounds_so_far() - before, 0);
	EXPECT_EQ(a->giga.free, 2);
	expect_giga(&a->mm, first_free(&a->giga));
	famine_end(&famine);
	EXPECT(arena_accounted(a));

	/* There are heads for one page and, but for one head, for another. */
	famine_of_heads(&famine, a, 2 * HEADS - 1);
	EXPECT_EQ(pool_demote(&a->giga, &a->pool, hvo_on(), 2), 1);
	EXPECT_EQ(rounds_so_far() - before, 1);
	EXPECT_EQ(a->giga.free, 1);
	EXPECT_EQ(a->pool.free, GIB_BLOCKS);
	expect_giga(&a->mm, first_free(&a->giga));
	expect_small_pages_right(&a->pool);
	famine_end(&famine);
	EXPECT(arena_accounted(a));
	EXPECT_EQ(pool_demote(&a->giga, &a->pool, hvo_on(), 2), 1);
	EXPECT_EQ(a->pool.free, 2 * GIB_BLOCKS);
}

/* Set how many of a node's free pages of 1 GiB are surplus, as if they could not be restored. */
static void set_surplus(struct arena *a, node_t n, u64 count)
{
	struct pool_node *node = &a->giga.node[n];

	spin_lock(&a->giga.lock);
	pool_count(&a->giga, node, (struct pool_delta){.surplus = (s64)(count - node->surplus)});
	spin_unlock(&a->giga.lock);
}

/*
 * Pages that could not be demoted are as many surplus pages as before, less those that were
 * demoted. A promise that brought one takes it along.
 */
TEST_ARENA(mm_giga, a_page_that_is_not_demoted_stays_surplus,
	   arena_borrow(MIB(16), .phantom = GIB(2)))
{
	struct famine famine;

	pool_set_overcommit(&a->giga, 1);
	EXPECT_EQ(pool_reserve(&a->giga, 1), 0);
	EXPECT_EQ(pool_grow(&a->giga, hvo_on(), 1), 1);
	famine_of_heads(&famine, a, HEADS - 1);
	EXPECT_EQ(pool_demote(&a->giga, &a->pool, hvo_on(), 1), 0);
	pool_expect_counts(&a->giga, 2, 0, 1);
	famine_end(&famine);
	pool_unreserve(&a->giga, 1);
	pool_expect_counts(&a->giga, 1, 0, 0);

	for (u64 surplus = 1; surplus <= 2; surplus++) {
		EXPECT_EQ(pool_grow(&a->giga, hvo_on(), 1), 1);
		set_surplus(a, 1, surplus);
		/* a page that is demoted brings its own head for one that is not surplus */
		famine_of_heads(&famine, a, 2 * HEADS - 2);
		EXPECT_EQ(pool_demote(&a->giga, &a->pool, hvo_on(), 2), 1);
		pool_expect_counts(&a->giga, 1, 0, surplus - 1);
		pool_expect_counts(&a->pool, GIB_BLOCKS, 0, 0);
		famine_end(&famine);
		EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), GIB_BLOCKS), GIB_BLOCKS);
		hvo_bare_free_huge(arena_phantom_zone(a), ~0ULL);
		EXPECT(arena_accounted(a));
	}
}

/* Surplus stays in the node of the page that is not demoted. */
TEST_ARENA(mm_giga, a_page_that_is_not_demoted_stays_surplus_in_its_node,
	   arena_borrow(MIB(16), .phantom = GIB(2), .phantom_nodes = 2))
{
	struct famine famine;

	EXPECT_EQ(pool_grow(&a->giga, hvo_on(), 2), 2);
	for (unsigned i = 0; i < 4; i++) { /* either node comes first, whichever has surplus */
		const node_t n = 1 + i / 2;

		a->giga.free_share = 1 + i % 2;
		set_surplus(a, n, 1);
		famine_of_heads(&famine, a, HEADS - 1);
		EXPECT_EQ(pool_demote(&a->giga, &a->pool, hvo_on(), 2), 0);
		famine_end(&famine);
		EXPECT_EQ(a->giga.node[n].pages, 1);
		EXPECT_EQ(a->giga.node[n].surplus, 1);
		pool_expect_counts(&a->giga, 2, 0, 1);
		set_surplus(a, n, 0);
	}
}

/*
 * ---- the baselines, in the machine's own mapped sections, since no arena is larger than 1 GiB
 * ----
 */

static void expect_restored(struct mm *mm, u32 index)
{
	for (u32 i = 0; i < GIB_BLOCKS; i++)
		if (block_look_at(mm, index + i).state != BLOCK_FULL)
			test_fail(__FILE__, __LINE__, "block %u was not restored", i);
	for (u64 i = 1; i < order_pages(GIGA_ORDER); i += STEP) {
		struct page *page = pfn_page(mm, block_pfn(index) + i);

		page->private[2] = i; /* this write faults if the tail is still shared */
	}
}

/*
 * Count the rounds that making a page and giving it back take. Nothing else on the machine starts
 * rounds, so the counts are exact.
 */
static void check_mapped(const char *name, u64 grow_rounds, u64 shrink_rounds, s64 saved)
{
	const struct hvo_mode *mode = hvo_mode_find(name);
	u64 before;
	u32 index;

	if (!pool_giga_possible())
		return;
	before = rounds_so_far();
	REQUIRE(pool_grow(&pool_1g, mode, 1) == 1);
	EXPECT_EQ(rounds_so_far() - before, grow_rounds);
	EXPECT_EQ(pool_frames_saved(&pool_1g), saved);
	index = first_free(&pool_1g);
	EXPECT(huge_tails_right(&mm_kernel, index, GIGA_ORDER, STEP));
	if (mode->make != hvo_form)
		expect_giga(&mm_kernel, index);
	EXPECT(account_machine());
	before = rounds_so_far();
	EXPECT_EQ(pool_shrink(&pool_1g, mode, 1), 1);
	EXPECT_EQ(rounds_so_far() - before, shrink_rounds);
	expect_restored(&mm_kernel, index);
	EXPECT(account_machine());
	sections_close_all(&mm_kernel);
	row_passed("%s", name);
}

TEST(mm_giga, off_needs_no_round_and_unbatched_one_for_every_step)
{
	check_mapped("off", 0, 0, 0);
	check_mapped("unbatched", 2, 1, SAVED_1G);
}

TEST(mm_giga, batched_needs_two_rounds_and_one)
{
	check_mapped("batched", 2, 1, SAVED_1G);
}
