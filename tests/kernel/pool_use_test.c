/*
 * Pools as their users see them: promises, surplus pages, the shares of nodes, and pages that
 * cannot be restored.
 */

#include "mm/hugetlb/pool_move.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/hvo/hvo_restore.h"
#include "tests/kernel/mm_test.h"

static struct page *take(struct arena *a, node_t node)
{
	return pool_page_take(&a->pool, node, POOL_ANY);
}

static void expect_counts(struct arena *a, u64 pages, u64 in_use, u64 surplus)
{
	pool_expect_counts(&a->pool, pages, in_use, surplus);
	EXPECT(arena_accounted(a));
}

/* Promised pages are not given to other callers and are not removed by shrinking. */
TEST_ARENA(mm_pool, promises_are_kept, arena_borrow(MIB(2), .phantom = GIB(1)))
{
	struct page *page[4];

	EXPECT_EQ(pool_reserve(&a->pool, 1), -ENOMEM);
	EXPECT_EQ(pool_resize(&a->pool, hvo_on(), 4), 4);
	EXPECT_EQ(pool_reserve(&a->pool, 5), -ENOMEM);
	EXPECT_EQ(pool_reserve(&a->pool, ~0ULL), -ENOMEM);
	EXPECT_EQ(pool_reserve(&a->pool, 3), 0);
	EXPECT_EQ(pool_reserve(&a->pool, 2), -ENOMEM);
	REQUIRE((page[0] = take(a, 0)));
	EXPECT(take(a, 0) == NULL);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), 4), 0);
	REQUIRE((page[1] = pool_page_take(&a->pool, 0, POOL_RESERVED)));
	EXPECT_EQ(a->pool.reserved, 2);
	EXPECT(take(a, 0) == NULL);
	EXPECT_EQ(pool_resize(&a->pool, hvo_on(), 0), 0);
	expect_counts(a, 4, 2, 4); /* two are promised and two in use, so all are surplus now */
	REQUIRE((page[2] = pool_page_take(&a->pool, 0, POOL_RESERVED)));
	pool_unreserve(&a->pool, 1);
	EXPECT_EQ(a->pool.reserved, 0);
	for (unsigned i = 0; i < 3; i++)
		pool_page_give(&a->pool, page[i]);
	EXPECT_EQ(a->pool.in_use, 0);
	/* the free page whose promise was withdrawn goes */
	EXPECT_EQ(pool_resize(&a->pool, hvo_on(), 0), 0);
	expect_counts(a, 0, 0, 0);
}

/* Surplus pages leave the pool when they are given back, unless a promise needs them. */
TEST_ARENA(mm_pool, a_page_that_is_promised_again_stays_in_its_pool,
	   arena_borrow(MIB(2), .phantom = GIB(1)))
{
	struct page *page[2];

	EXPECT_EQ(pool_resize(&a->pool, hvo_on(), 2), 2);
	EXPECT_EQ(pool_reserve(&a->pool, 2), 0);
	for (unsigned i = 0; i < 2; i++)
		REQUIRE((page[i] = pool_page_take(&a->pool, 0, POOL_RESERVED)));
	EXPECT_EQ(pool_resize(&a->pool, hvo_on(), 0), 0);
	pool_page_give_promised(&a->pool, page[0]);
	expect_counts(a, 2, 1, 2);
	EXPECT_EQ(a->pool.reserved, 1);
	EXPECT(take(a, 0) == NULL);
	pool_page_give(&a->pool, page[1]);
	expect_counts(a, 1, 0, 1);
	REQUIRE((page[0] = pool_page_take(&a->pool, 0, POOL_RESERVED)));
	/* a page with another reference follows its promise later */
	page_get(page[0]);
	pool_page_give_promised(&a->pool, page[0]);
	EXPECT_EQ(a->pool.reserved, 1);
	EXPECT_EQ(a->pool.in_use, 1);
	pool_page_give(&a->pool, page[0]);
	expect_counts(a, 1, 0, 1);
	REQUIRE((page[0] = pool_page_take(&a->pool, 0, POOL_RESERVED)));
	pool_page_give(&a->pool, page[0]);
	expect_counts(a, 0, 0, 0);
}

/* ---- nodes ---- */

TEST_ARENA(mm_pool, nodes_have_equal_shares, arena_borrow(MIB(128), .nodes = 4))
{
	u64 most = 0, least = ~0ULL;

	EXPECT_EQ(pool_grow(&a->pool, hvo_on(), 20), 20);
	for (node_t n = 0; n < 4; n++)
		EXPECT_EQ(a->pool.node[n].pages, 5);
	for (unsigned i = 0; i < 10; i++) /* pages grown singly come from each node in turn */
		EXPECT_EQ(pool_grow(&a->pool, hvo_on(), 1), 1);
	for (node_t n = 0; n < 4; n++) {
		most = MAX(most, a->pool.node[n].pages);
		least = MIN(least, a->pool.node[n].pages);
	}
	EXPECT(most - least <= 1);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), 12), 12);
	for (node_t n = 0; n < 4; n++)
		EXPECT(a->pool.node[n].pages >= 4 && a->pool.node[n].pages <= 5);
	EXPECT(account_pool(&a->pool));
	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), ~0ULL), 18);
	expect_counts(a, 0, 0, 0);
}

/* ---- pools of nearly all memory ---- */

/* Metadata memory grows and shrinks with the pool. */
TEST_ARENA(mm_pool, it_can_have_98_percent_of_memory, arena_borrow(MIB(512)))
{
	const u64 blocks = MIB(512) >> BLOCK_SHIFT;
	const u64 grown = pool_resize(&a->pool, hvo_on(), blocks);

	EXPECT(grown > blocks * 98 / 100);
	for (unsigned turn = 0; turn < 2; turn++) { /* nothing is lost */
		expect_counts(a, grown, 0, 0);
		EXPECT_EQ(pool_resize(&a->pool, hvo_on(), blocks), grown); /* no more can be had */
		EXPECT_EQ(pool_resize(&a->pool, hvo_on(), 0), 0);
		expect_counts(a, 0, 0, 0);
		EXPECT_EQ(pool_resize(&a->pool, hvo_on(), blocks), grown);
	}
	EXPECT_EQ(pool_resize(&a->pool, hvo_on(), 0), 0);
}

/* Heads are reserved for the pages that memory has room for, so no block is spent on the others. */
TEST_ARENA(mm_pool, pages_that_memory_has_no_room_for_cost_none, arena_borrow(MIB(16)))
{
	EXPECT_EQ(pool_grow(&a->pool, hvo_on(), BLOCK_FRAMES), 7);
	EXPECT_EQ(a->mm.node[0].meta.blocks, 1);
}

/*
 * ---- The HVO series' restore contract (Kravetz, "Batch hugetlb vmemmap modification operations",
 * 2023-09) ----
 */

enum { PAGES = 10, PER_PAGE = 7, ENOUGH_FOR = 3 };

/*
 * Restoring stops at the first page for which there are no frames, and reports both the error and
 * the number of pages done. The pool gives those pages back, which may bring frames for the rest.
 * Pages that still cannot be restored stay in the pool, whole and usable, as surplus pages.
 */
TEST_ARENA(mm_pool, restoring_fails_with_error_and_count_and_loses_nothing, arena_borrow(MIB(256)))
{
	const struct hvo_mode *batched = hvo_mode_find("batched");
	struct block_list list = BLOCK_LIST_INIT, done = BLOCK_LIST_INIT;
	struct famine famine;
	struct page *page;
	u64 restored;

	/* hvo_restore() returns the error and the count. */
	EXPECT_EQ(pool_make(&a->pool, batched, 0, PAGES, &list), PAGES);
	famine_begin(&famine, a, META_MEMMAP, ENOUGH_FOR * PER_PAGE + PER_PAGE - 1);
	EXPECT_EQ(hvo_restore(&a->mm, batched, &list, &done, &restored), -ENOMEM);
	EXPECT_EQ(restored, ENOUGH_FOR);
	EXPECT_EQ(done.count, ENOUGH_FOR);
	EXPECT_EQ(list.count, PAGES - ENOUGH_FOR);
	block_list_foreach(&a->mm, i, &done)
		EXPECT_EQ(block_look_at(&a->mm, i).state, BLOCK_FULL);
	block_list_foreach(&a->mm, i, &list)
		EXPECT(huge_line_right(&a->mm, i, BLOCK_ORDER) &&
		       huge_tails_right(&a->mm, i, BLOCK_ORDER, 1));
	famine_end(&famine);
	EXPECT_EQ(hvo_restore(&a->mm, batched, &list, &done, &restored), 0);
	EXPECT_EQ(restored, PAGES - ENOUGH_FOR);
	block_list_foreach(&a->mm, i, &done)
		block_page(&a->mm, i)->flags = 0;
	block_list_publish_free(&a->mm, &done);
	EXPECT(arena_accounted(a));

	/*
	 * The pool has frames for three pages. It gives these pages back, metadata memory grows
	 * into one of them, and the other pages can be restored.
	 */
	EXPECT_EQ(pool_resize(&a->pool, batched, PAGES), PAGES);
	famine_begin(&famine, a, META_MEMMAP, ENOUGH_FOR * PER_PAGE + PER_PAGE - 1);
	EXPECT_EQ(pool_resize(&a->pool, batched, 0), 0);
	famine_end(&famine);
	expect_counts(a, 0, 0, 0);

	/*
	 * The pool has frames for no page. All pages stay, as usable surplus pages, and leave when
	 * there are frames.
	 */
	EXPECT_EQ(pool_resize(&a->pool, batched, PAGES), PAGES);
	famine_begin(&famine, a, META_MEMMAP, PER_PAGE - 1);
	EXPECT_EQ(pool_resize(&a->pool, batched, 0), 0);
	pool_expect_counts(&a->pool, PAGES, 0, PAGES);
	REQUIRE((page = take(a, 0)));
	EXPECT(huge_tails_right(&a->mm, block_of_page(page), BLOCK_ORDER, 1));
	pool_page_give(&a->pool, page);
	pool_expect_counts(&a->pool, PAGES, 0, PAGES);
	famine_end(&famine);
	EXPECT_EQ(pool_shrink(&a->pool, batched, 1), 1); /* a surplus page, for no other is there */
	expect_counts(a, PAGES - 1, 0, PAGES - 1);
	EXPECT_EQ(pool_resize(&a->pool, batched, 0), 0);
	expect_counts(a, 0, 0, 0);
}

/* The page that leaves first has no frames, the other one needs none. */
TEST_ARENA(mm_pool, a_page_without_frames_keeps_no_other_from_leaving_later, arena_borrow(MIB(256)))
{
	const struct hvo_mode *batched = hvo_mode_find("batched");
	struct famine famine;
	u64 gone = 0;

	EXPECT_EQ(pool_grow(&a->pool, hvo_on(), 1), 1);
	EXPECT_EQ(pool_grow(&a->pool, batched, 1), 1);
	famine_begin(&famine, a, META_MEMMAP, PER_PAGE - 1);
	for (unsigned i = 0; i < 2; i++)
		gone += pool_shrink(&a->pool, batched, 1);
	EXPECT_EQ(gone, 1);
	pool_expect_counts(&a->pool, 1, 0, 0); /* the one that went was the surplus */
	famine_end(&famine);
	EXPECT_EQ(pool_shrink(&a->pool, batched, 1), 1);
	expect_counts(a, 0, 0, 0);
}

/*
 * A 1 GiB page is demoted while another page is made to take its place. Its first block now heads a
 * page of the other pool, free or in use. The block must stay there, and the new page must become
 * free again.
 */
TEST_ARENA(mm_pool, a_page_that_was_demoted_meanwhile_is_not_replaced,
	   arena_borrow(MIB(32), .phantom = GIB(2)))
{
	struct migrate_stats stats = {0};
	struct page *used;
	u32 old, new;

	EXPECT_EQ(pool_grow_on(&a->giga, hvo_on(), a->options.nodes, 1), 1);
	old = a->giga.node[a->options.nodes].free.head;
	for (unsigned turn = 0; turn < 2; turn++) {
		REQUIRE((new = pool_make_near(&a->giga, a->options.nodes)) != BLOCK_NONE);
		EXPECT(turn > 0 || pool_demote(&a->giga, &a->pool, hvo_on(), 1) == 1);
		do
			used = turn > 0 ? pool_page_take(&a->pool, a->options.nodes, POOL_ANY)
					: NULL;
		while (used && page_to_pfn(used) != block_pfn(old));
		EXPECT_EQ(used != NULL, turn > 0);
		EXPECT_EQ(pool_move_to(&a->giga, old, new, &stats), -EAGAIN);
		EXPECT_EQ(a->giga.pages, 0);
		EXPECT_EQ(a->pool.pages, GIB_BLOCKS);
		EXPECT(arena_accounted(a));
	}
}

/* ---- edges of the HVO series ---- */

/*
 * Edge cases of the HVO series and the pools before it (Kravetz, "Batch hugetlb vmemmap
 * modification operations", 2023-09): a node without frames, odd pages, promises that make surplus
 * pages, and page tables that cannot be had.
 */

enum { EACH = 10 };

static struct famine famine;

/*
 * Borrow an arena with a pool that has as many pages on each of two nodes. Node 0 has no frames to
 * restore any of them. Returns NULL if the case is skipped.
 */
static struct arena *borrow_half_starved(void)
{
	struct arena *a = arena_borrow(MIB(512), .nodes = 2);

	if (!a)
		return NULL;
	EXPECT_EQ(pool_grow(&a->pool, hvo_mode_find("batched"), 2 * EACH), 2 * EACH);
	famine_begin(&famine, a, META_MEMMAP, PER_PAGE - 1);
	return a;
}

/* The pages of node 1 go, and those of node 0 stay as surplus pages. */
TEST_ARENA(mm_pool, a_node_without_frames_keeps_nobody_from_shrinking, borrow_half_starved())
{
	const struct hvo_mode *batched = hvo_mode_find("batched");

	EXPECT_EQ(pool_shrink(&a->pool, batched, 2 * EACH), EACH);
	EXPECT_EQ(a->pool.node[0].pages, EACH);
	EXPECT_EQ(a->pool.node[0].surplus, EACH);
	EXPECT_EQ(a->pool.node[1].pages, 0);
	EXPECT(account_pool(&a->pool));
	famine_end(&famine);
	EXPECT_EQ(pool_shrink(&a->pool, batched, EACH), EACH);
	EXPECT_EQ(a->pool.surplus, 0);
}

/*
 * Some of the pages that should go cannot. The other pages make up for them, but the total is no
 * more than was asked for.
 */
TEST_ARENA(mm_pool, resizing_past_a_node_without_frames_ends_at_the_target, borrow_half_starved())
{
	const struct hvo_mode *batched = hvo_mode_find("batched");

	EXPECT_EQ(pool_resize(&a->pool, batched, 3 * EACH / 2), 3 * EACH / 2);
	EXPECT_EQ(a->pool.pages - a->pool.surplus, 3 * EACH / 2);
	EXPECT(account_pool(&a->pool));
	famine_end(&famine);
	EXPECT_EQ(pool_resize(&a->pool, batched, 0), 0);
	EXPECT_EQ(a->pool.pages, 0);
}

/* The pool remembers which node gave the last odd page, as it does for growing. */
TEST_ARENA(mm_pool, odd_pages_leave_the_nodes_in_turn, arena_borrow(MIB(512), .nodes = 2))
{
	EXPECT_EQ(pool_grow(&a->pool, hvo_on(), 64), 64);
	for (unsigned i = 0; i < 3; i++)
		EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), 1), 1);
	for (node_t n = 0; n < 2; n++)
		EXPECT(a->pool.node[n].pages == 30 || a->pool.node[n].pages == 31);
	EXPECT_EQ(a->pool.pages, 61);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), 61), 61);
}

/*
 * Pages that a promise lacks are made as surplus and go when the promise is given back. Persistent
 * pages stay.
 */
TEST_ARENA(mm_pool, a_promise_brings_surplus_and_takes_it_along, arena_usual())
{
	struct page *page;

	EXPECT_EQ(pool_grow(&a->pool, hvo_on(), 2), 2);
	a->pool.overcommit = 3;
	EXPECT_EQ(pool_reserve(&a->pool, 6), -ENOMEM);
	pool_expect_counts(&a->pool, 2, 0, 0);
	EXPECT_EQ(a->pool.reserved, 0);
	EXPECT_EQ(pool_reserve(&a->pool, 5), 0);
	pool_expect_counts(&a->pool, 5, 0, 3);
	EXPECT_EQ(a->pool.reserved, 5);
	EXPECT_EQ(pool_reserve(&a->pool, 1), -ENOMEM);
	page = pool_page_take(&a->pool, 0, POOL_RESERVED);
	REQUIRE(page);
	pool_unreserve(&a->pool, 4);
	pool_expect_counts(&a->pool, 2, 1, 0);
	pool_page_give(&a->pool, page);
	pool_expect_counts(&a->pool, 2, 0, 0);
}

/*
 * If there is room for some of the pages only, nothing is promised, and the pages already made go.
 */
TEST_ARENA(mm_pool, a_promise_that_can_not_be_kept_leaves_no_surplus, arena_usual())
{
	a->pool.overcommit = 4096;
	EXPECT_EQ(pool_reserve(&a->pool, 2048), -ENOMEM);
	EXPECT_EQ(a->pool.reserved, 0);
	pool_expect_counts(&a->pool, 0, 0, 0);
}

/* Free surplus pages that were there before, as if they could not be restored, stay. */
TEST_ARENA(mm_pool, a_promise_that_can_not_be_kept_takes_no_surplus_of_before, arena_usual())
{
	EXPECT_EQ(pool_grow(&a->pool, hvo_on(), 2), 2);
	for (node_t n = 0; n < a->mm.nodes; n++)
		a->pool.surplus += a->pool.node[n].surplus = a->pool.node[n].pages;
	a->pool.overcommit = 4096;
	EXPECT_EQ(pool_reserve(&a->pool, 2048), -ENOMEM);
	EXPECT_EQ(a->pool.reserved, 0);
	expect_counts(a, 2, 0, 2);
	EXPECT_EQ(pool_reserve(&a->pool, 2), 0);
	pool_unreserve(&a->pool, 2);
	expect_counts(a, 0, 0, 0);
}

/*
 * Grow a pool by `pages` while metadata memory refuses its `nth` request. Returns how many of the
 * pages have all their struct pages, or ~0 if there is no such request.
 */
static u64 grow_with_failure(struct arena *a, u64 pages, u64 nth)
{
	const struct hvo_mode *batched = hvo_mode_find("batched");
	u64 grown, full = 0;

	fail_arm(&a->mm.fail, FAIL_META, nth, FAIL_ONCE);
	grown = pool_grow(&a->pool, batched, pages);
	if (!fail_disarm(&a->mm.fail))
		full = ~0ULL;
	EXPECT(account_pool(&a->pool));
	for (u32 i = a->pool.node[0].free.head; i != BLOCK_NONE && full != ~0ULL;
	     i = block_at(&a->mm, i)->next) {
		full += block_look_at(&a->mm, i).state == BLOCK_FULL;
		EXPECT(huge_tails_right(&a->mm, i, BLOCK_ORDER, 1));
	}
	EXPECT_EQ(pool_shrink(&a->pool, batched, pages), grown);
	EXPECT_EQ(a->pool.pages, 0);
	EXPECT(arena_accounted(a));
	return full;
}

/*
 * Grow a pool of a new arena with one failure after the other. Returns the most pages that had all
 * their struct pages, or ~0 if the case was skipped.
 */
static u64 most_full(u64 bytes, u64 pages)
{
	u64 full = 0, most = 0;

	for (u64 nth = 1; full != ~0ULL; nth++) {
		struct arena *a = arena_borrow(bytes);

		if (!a)
			return ~0ULL;
		full = grow_with_failure(a, pages, nth);
		most = full != ~0ULL ? MAX(most, full) : most;
		arena_return(a);
	}
	return most;
}

/* Without a frame for a page table the pages are still made, with all their struct pages. */
TEST(mm_pool, pages_that_can_not_be_optimised_are_pages)
{
	const u64 most = most_full(MIB(256), 4);

	EXPECT(most == 4 || most == ~0ULL);
}

/*
 * At first there is no frame for one page table. The pages of the other section are made, their
 * frames are flushed, and one of the frames becomes the table.
 */
TEST(mm_pool, frames_of_one_section_split_the_next)
{
	const u64 most = most_full(MIB(512), 2 * SECTION_BLOCKS);

	EXPECT(most == 0 || most == ~0ULL);
}

/* ---- lists over the borders of sections, GiB and nodes ---- */

/* Expect so many pages, all free, as lists and as records say, with right struct pages. */
static void expect_all_right(struct arena *a, u64 pages)
{
	u64 marked[ARENA_NODES_MAX] = {0};

	expect_counts(a, pages, 0, 0);
	for (u32 i = 0; i < a->mm.gibs * GIB_BLOCKS; i++) {
		const struct block_word word =
			block_look_any(&a->mm, (u32)a->mm.first_gib * GIB_BLOCKS + i);

		if (word.flags & BLOCK_POOL)
			marked[a->mm.zone[word.zone].node]++;
	}
	for (node_t n = 0; n < a->mm.nodes && !test_failed(); n++) {
		EXPECT_EQ(a->pool.node[n].pages, marked[n]);
		block_list_foreach(&a->mm, i, &a->pool.node[n].free)
			EXPECT(huge_line_right(&a->mm, i, BLOCK_ORDER) &&
			       huge_tails_right(&a->mm, i, BLOCK_ORDER, 64));
	}
}

/*
 * Grow by `pages`, in equal shares: of all nodes, or only of those from `first` on. If the last
 * node has too few, the rest comes from node `first`.
 */
static void grow(struct arena *a, const struct hvo_mode *mode, node_t first, u64 pages)
{
	const u64 wanted = a->pool.pages + pages;

	if (first == 0)
		EXPECT_EQ(pool_grow(&a->pool, mode, pages), pages);
	for (node_t n = first; n < a->mm.nodes; n++)
		pool_grow_on(&a->pool, mode, n, (wanted - a->pool.pages) / (a->mm.nodes - n));
	pool_grow_on(&a->pool, mode, first, wanted - a->pool.pages);
	expect_all_right(a, wanted);
}

static void shrink(struct arena *a, const struct hvo_mode *mode, u64 pages)
{
	const u64 before = a->pool.pages;

	EXPECT_EQ(pool_shrink(&a->pool, mode, pages), pages);
	expect_all_right(a, before - pages);
}

/* Shrink each node by the pages that lie before the first border of a GiB in its list. */
static void shrink_to_borders(struct arena *a, const struct hvo_mode *mode)
{
	for (node_t n = 0; n < a->mm.nodes; n++) {
		const u64 pages = a->pool.pages;
		const u32 head = a->pool.node[n].free.head;
		u64 count = 0;

		block_list_foreach(&a->mm, i, &a->pool.node[n].free) {
			if (i / GIB_BLOCKS != head / GIB_BLOCKS)
				break;
			count++;
		}
		EXPECT_EQ(pool_shrink_on(&a->pool, mode, n, count), count);
		expect_all_right(a, pages - count);
	}
}

/*
 * Grow and shrink in the nodes from `first` on, three times: with fresh memory, and with `split`
 * blocks of each of them split.
 */
static void grow_and_shrink(struct arena *a, const struct hvo_mode *mode, node_t first, u64 pages,
			    u64 split)
{
	const u64 part = pages / 2 | 1;
	struct page *chain = NULL;

	for (unsigned turn = 0; turn < 3 && !test_failed(); turn++) {
		grow(a, mode, first, pages);
		shrink(a, mode, part);
		grow(a, mode, first, part - 2);
		shrink_to_borders(a, mode);
		shrink(a, mode, a->pool.pages);
		for (node_t n = first; n < a->mm.nodes; n++)
			EXPECT_EQ(chain_take(&chain, &a->mm, 2 * split, BLOCK_ORDER - 1, PAGE_NODE,
					     n),
				  2 * split);
		chain_give(&chain, &a->mm);
		EXPECT(arena_accounted(a));
	}
}

enum { BORDER_BLOCK = 15 }; /* of nodes, in its section */

TEST_ARENA(mm_pool, lists_cross_sections_gigabytes_and_nodes,
	   arena_borrow(arena_bytes_for(GIB(3)), .phantom = GIB(3), .phantom_nodes = 2,
			.phantom_skew = BORDER_BLOCK * MIB(2)))
{
	grow_and_shrink(a, hvo_on(), 1, 1501, 183);
}

/*
 * The same where struct pages are restored, in mapped sections. Those of metadata blocks, the first
 * of either node, are not mapped: one of 64 blocks is left on each node.
 */
TEST_ARENA(mm_pool, lists_of_a_baseline_cross_sections_and_nodes,
	   arena_borrow(MIB(512), .nodes = 2, .skew = BORDER_BLOCK * MIB(2)))
{
	grow_and_shrink(a, hvo_mode_find("batched"), 0, 121, 33);
}
