/*
 * Searches for contiguous ranges: 1 GiB pages made of scattered memory, and which ranges and pages
 * each search looks at.
 */
#include "mm/contig/contig_read.h"
#include "tests/kernel/max_order.h"
#include "tests/kernel/mm_test.h"

enum { HOLDER_SLOTS = 2048, FAULTS_MAX = 4000 };

static struct page *slots[HOLDER_SLOTS];
static struct holder holder; /* the holder of the case that runs */

/* ---- 1 GiB pages ---- */

/* Pages that the case holds have no memory. */
static void hold_phantom(struct arena *a)
{
	holder_init(&holder, &a->mm, slots, HOLDER_SLOTS);
	holder.phantom = true;
}

static struct page *alloc_giga(struct arena *a)
{
	return mm_page_alloc(&a->mm, GIGA_ORDER, USE_MOVABLE, PAGE_NODE, a->options.nodes);
}

/*
 * Fill two phantom GiB with 2 MiB pages and keep every eighth of them. No large piece of free
 * memory is left.
 */
static bool scatter_huge(struct arena *a)
{
	static struct page *page[2 * GIB_BLOCKS];
	const node_t node = a->options.nodes;
	u64 count = 0;

	hold_phantom(a);
	while (count < ARRAY_LEN(page) &&
	       (page[count] = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, PAGE_NODE, node)))
		count++;
	for (u64 i = 0; i < count; i++) {
		if (i % 8 == 3)
			holder_adopt(&holder, page[i]);
		else
			mm_page_free(&a->mm, page[i]);
	}
	for (u64 i = 0; i < 6; i++)
		holder_take(&holder, 0, node);
	return count == ARRAY_LEN(page);
}

TEST_ARENA(mm_contig, a_gigabyte_is_made_of_scattered_memory,
	   arena_borrow(MIB(32), .phantom = GIB(2)))
{
	struct page *giga;

	test_option("contig", "index"); /* the other searches read mapped sections only */
	REQUIRE(scatter_huge(a));
	EXPECT(arena_accounted(a));
	giga = alloc_giga(a);
	REQUIRE(giga);
	EXPECT(IS_ALIGNED(page_to_pfn(giga), order_pages(GIGA_ORDER)));
	EXPECT_EQ(holder_pages_in(&holder, page_to_pfn(giga),
				  page_to_pfn(giga) + order_pages(GIGA_ORDER)),
		  0);
	EXPECT(holder.moved >= GIB_BLOCKS / 8);
	EXPECT(holder_intact(&holder));
	EXPECT_EQ(block_look(block_of(&a->mm, page_to_pfn(giga))).state, BLOCK_HUGE);
	EXPECT_EQ(block_look_at(&a->mm, block_of_page(giga) + GIB_BLOCKS - 1).state, BLOCK_NOHEAD);
	EXPECT(huge_line_right(&a->mm, block_of_page(giga), GIGA_ORDER));
	EXPECT(huge_tails_right(&a->mm, block_of_page(giga), GIGA_ORDER, 37));
	EXPECT(arena_accounted(a));
	/* The pages that were moved fill part of the other GiB. */
	EXPECT(!alloc_giga(a));
}

/*
 * Empty the GiB once with one failure, in an arena where no page was moved before, because a page
 * that has moved is no longer in the way. Returns true if the failure was met.
 */
static bool empty_gigabyte_with_fault(struct arena *a, u32 fault)
{
	struct zone *zone = arena_phantom_zone(a);
	const u32 first = block_of_page(holder.page[0]) / GIB_BLOCKS * GIB_BLOCKS;
	struct block_list list = BLOCK_LIST_INIT;
	struct contig_stats stats = {0};
	bool met;
	int err;

	fail_arm(&a->mm.fail, FAIL_ANY, fault, FAIL_ONCE);
	err = contig_take(zone, first, GIB_BLOCKS, &(struct migrate_how){.giga = MIGRATE_KEEP_GIGA},
			  &list, &stats);
	met = fail_disarm(&a->mm.fail);
	EXPECT(err == 0 || met);
	EXPECT_EQ(zone->free_type[MIGRATE_ISOLATE], 0);
	EXPECT_EQ(list.count, err ? 0 : GIB_BLOCKS);
	EXPECT_EQ(zone->transit, err ? 0 : order_pages(GIGA_ORDER));
	EXPECT(holder_intact(&holder));
	block_list_publish_free(&a->mm, &list);
	EXPECT_EQ(zone->free_type[MIGRATE_ISOLATE], 0);
	EXPECT(arena_accounted(a));
	return met;
}

TEST(mm_contig, failing_to_empty_a_gigabyte_leaves_no_trace)
{
	struct arena *a = NULL;
	u32 places = 0;
	bool met = true;

	/* each fifth place: the first half of them isolate blocks, the others move pages */
	for (u32 fault = 1; met && fault < FAULTS_MAX && !test_failed();
	     fault = sweep_next(fault + 4)) {
		if (a && holder.moved > 0) { /* otherwise the arena is as it was */
			arena_return(a);
			a = NULL;
		}
		if (!a) {
			a = arena_borrow(MIB(32), .phantom = GIB(2));
			if (!a)
				return;
			REQUIRE(scatter_huge(a));
		}
		met = empty_gigabyte_with_fault(a, fault);
		places = met ? fault : places;
	}
	arena_return(a);
	EXPECT(!met || test_failed());
	EXPECT(places > GIB_BLOCKS / 8); /* it failed both while isolating and while moving */
	print("  # emptying a gigabyte: the last of the places that failed was the %uth\n", places);
}

/*
 * Of the block at `first`, hold `count` movable pages: number 1, 9, 17 and so on. The rest is free.
 */
static bool hold_some(struct arena *a, pfn_t first, unsigned count)
{
	if (mm_contig_alloc_range(&a->mm, first, BLOCK_FRAMES) < 0)
		return false;
	for (unsigned i = 0; i < BLOCK_FRAMES; i++) {
		if (i % 8 == 1 && i / 8 < count)
			holder_adopt(&holder, pfn_page(&a->mm, first + i));
		else
			mm_page_free(&a->mm, pfn_page(&a->mm, first + i));
	}
	return true;
}

/* Hold so many pages in each of two blocks of a phantom GiB. */
static void sprinkle(struct arena *a, u32 gib, unsigned pages)
{
	const u32 first = arena_phantom_block(a) + gib * GIB_BLOCKS;

	EXPECT(hold_some(a, block_pfn(first + 3), pages));
	EXPECT(hold_some(a, block_pfn(first + 100), pages));
}

enum { DEAR = 5, CHEAP = 4 }; /* pages in a block */

/*
 * The pages in the way of two 1 GiB pages move to the third GiB, which costs most to empty. Each
 * page moves once, and not to the GiB that is emptied next.
 */
TEST_ARENA(mm_contig, what_is_moved_goes_where_it_can_stay,
	   arena_borrow(MIB(32), .phantom = GIB(3)))
{
	struct page *page[2];
	pfn_t last;

	test_option("contig", "index"); /* the only search that gathers */
	hold_phantom(a);
	sprinkle(a, 2, DEAR);
	sprinkle(a, 0, CHEAP);
	sprinkle(a, 1, CHEAP);
	last = block_pfn(arena_phantom_block(a) + 2 * GIB_BLOCKS);
	for (unsigned i = 0; i < 2; i++)
		REQUIRE((page[i] = alloc_giga(a)));
	EXPECT_EQ(holder.moved, 2 * 2 * CHEAP);
	EXPECT_EQ(holder_pages_in(&holder, last, last + order_pages(GIGA_ORDER)), holder.slots);
	EXPECT(holder_intact(&holder));
}

/*
 * A frame on a CPU's list hides that its GiB costs least. The pages of the last block that was
 * sprinkled are on this CPU's list.
 */
TEST_ARENA(mm_contig, fewest_frames_move_also_where_a_cpu_holds_some,
	   arena_borrow(MIB(32), .phantom = GIB(3)))
{
	struct page *page;

	test_option("contig", "index"); /* the only search that goes by what must move */
	hold_phantom(a);
	sprinkle(a, 0, DEAR);
	sprinkle(a, 2, DEAR);
	sprinkle(a, 1, CHEAP);
	page = alloc_giga(a);
	REQUIRE(page);
	EXPECT_EQ(holder.moved, 2 * CHEAP);
	EXPECT_EQ(block_of_page(page), arena_phantom_block(a) + GIB_BLOCKS);
}

/* The GiB with the fewest frames to move has a page that cannot move, so nobody tries it. */
TEST_ARENA(mm_contig, each_page_empties_the_gib_with_the_fewest_frames_that_can_move,
	   arena_borrow(MIB(32), .phantom = GIB(5)))
{
	static const u8 pages[] = {7, 1, 5, 9, 6}, next[] = {2, 4, 0}; /* pages in a block; GiB */
	const u32 first = arena_phantom_block(a);
	const u64 before = contig_totals.candidates;
	u64 moved = 0;

	test_option("contig", "index");
	holder_init(&holder, &a->mm, slots, HOLDER_SLOTS);
	holder.phantom = true;
	for (u32 gib = 0; gib < ARRAY_LEN(pages); gib++)
		sprinkle(a, gib, pages[gib]);
	REQUIRE(mm_contig_alloc_range(&a->mm, block_pfn(first + GIB_BLOCKS + 7), BLOCK_FRAMES) ==
		0);
	for (u32 i = 0; i < ARRAY_LEN(next); i++) {
		struct page *page =
			mm_page_alloc(&a->mm, GIGA_ORDER, USE_MOVABLE, PAGE_NODE, a->options.nodes);

		REQUIRE(page);
		EXPECT_EQ(block_of_page(page), first + next[i] * GIB_BLOCKS);
		moved += 2 * pages[next[i]];
		EXPECT_EQ(holder.moved, moved);
	}
	EXPECT_EQ(contig_totals.candidates, before + ARRAY_LEN(next));
}

/* 0.8 GiB are free in two GiB, so no page moves in vain. */
TEST_ARENA(mm_contig, nothing_moves_where_less_than_a_gigabyte_is_free,
	   arena_borrow(MIB(32), .phantom = GIB(2)))
{
	enum { EACH = 5 };

	test_option("contig", "index");
	hold_phantom(a);
	while (holder_take(&holder, BLOCK_ORDER, a->options.nodes))
		;
	for (u64 slot = 0; slot < holder.slots; slot++)
		if (slot % EACH < 2)
			holder_give(&holder, slot);
	EXPECT(!alloc_giga(a));
	EXPECT_EQ(holder.moved, 0);
	holder_give_all(&holder);
}

/* Whichever GiB is tried, its pages find no room: the search ends before it has tried them all. */
TEST_ARENA(mm_contig, a_search_without_room_tries_two_ranges,
	   arena_borrow(MIB(32), .phantom = GIB(3)))
{
	struct block_list list = BLOCK_LIST_INIT;
	const u64 before = contig_totals.candidates;

	test_option("contig", "index");
	hold_phantom(a);
	for (u32 gib = 0; gib < 3; gib++)
		sprinkle(a, gib, CHEAP);
	fail_arm(&a->mm.fail, FAIL_MOVE, 1, FAIL_AGAIN);
	EXPECT_EQ(contig_take_giga(arena_phantom_zone(a), hvo_on(), 1, &list), 0);
	fail_disarm(&a->mm.fail);
	EXPECT_EQ(contig_totals.candidates, before + 2);
	EXPECT_EQ(holder.moved, 0);
}

/* ---- the pages that searches look at ---- */

/* The first range that a search would try; *scanned is how many struct pages it read. */
static u32 first_candidate(struct zone *zone, const char *name, unsigned order, u64 *scanned)
{
	const struct contig_search *search = contig_search_find(name);
	struct contig_stats stats = {0};
	struct contig_scan scan = {.zone = zone, .order = order, .stats = &stats};
	const u32 first = search->next(&scan, search);

	*scanned = stats.scanned;
	return first;
}

static u32 mapped; /* the first block of the mapped section of the case that runs */

/* Borrow an arena with one mapped section, whose runs are as long as Linux's. */
static struct arena *borrow_mapped(void)
{
	struct arena *a = arena_borrow(MIB(256));

	if (!a)
		return NULL;
	buddy_set_max_order(&a->mm, 10);
	/* the first section holds metadata memory */
	mapped = (arena_block(a) / SECTION_BLOCKS + 1) * SECTION_BLOCKS;
	EXPECT_EQ(section_open(&a->mm, mapped / SECTION_BLOCKS, SECTION_MAPPED), 0);
	return a;
}

enum { SMALL_ORDER = 13, SMALL_RANGES = 4 }; /* 32 MiB; a section has four such ranges */

/*
 * Hold a used 2 MiB page with all its struct pages in each range of the arena's only mapped
 * section. All other memory is free.
 */
static bool one_huge_page_in_each_range(struct arena *a, u32 section_first)
{
	const struct hvo_mode *off = hvo_mode_find("off");
	static struct page *page[SECTION_BLOCKS];
	bool kept[SMALL_RANGES] = {false};
	u64 count = 0;

	holder_init(&holder, &a->mm, slots, HOLDER_SLOTS);
	pool_grow(&a->pool, off, SECTION_BLOCKS);
	while (count < ARRAY_LEN(page) && (page[count] = pool_page_take(&a->pool, 0, POOL_ANY)))
		count++;
	for (u64 i = 0; i < count; i++) {
		const u64 range =
			((block_of_page(page[i])) - section_first) / order_blocks(SMALL_ORDER);

		if (range < SMALL_RANGES && !kept[range])
			kept[range] = holder_adopt(&holder, page[i]);
		else
			pool_page_give(&a->pool, page[i]);
	}
	pool_shrink(&a->pool, off, ~0ULL);
	return holder.slots == SMALL_RANGES;
}

static struct page *alloc_with(struct arena *a, const char *search)
{
	const struct contig_search *was = contig_search_select(contig_search_find(search));
	struct page *page = mm_contig_alloc(&a->mm, SMALL_ORDER, 0);

	contig_search_select(was);
	return page;
}

static void expect_small_range_works(struct arena *a, const char *search)
{
	struct page *page = alloc_with(a, search);

	EXPECT(page != NULL);
	if (!page)
		return;
	EXPECT(IS_ALIGNED(page_to_pfn(page), order_pages(SMALL_ORDER)));
	EXPECT(holder_intact(&holder));
	EXPECT(arena_accounted(a));
	mm_contig_free_range(&a->mm, page_to_pfn(page), order_pages(SMALL_ORDER));
}

TEST_ARENA(mm_contig, skip_moves_what_strict_gives_up_on, borrow_mapped())
{
	u64 before;

	REQUIRE(one_huge_page_in_each_range(a, mapped));
	EXPECT(!alloc_with(a, "strict"));
	EXPECT_EQ(holder.moved, 0);
	EXPECT(arena_accounted(a));
	expect_small_range_works(a, "skip");
	before = holder.moved;
	EXPECT(before > 0);
	expect_small_range_works(a, "vanilla");
	expect_small_range_works(a, "index");
	EXPECT_EQ(a->pool.in_use, SMALL_RANGES);
}

/*
 * The point of the contiguous-range series: vanilla proposes a huge page as large as the request
 * after reading all of it, and skip stops at its head.
 */
TEST_ARENA(mm_contig, only_vanilla_reads_pages_as_large_as_the_request, borrow_mapped())
{
	u64 scanned;
	u32 huge = mapped;
	struct zone *zone = arena_zone(a, 0);

	EXPECT_EQ(pool_grow(&a->pool, hvo_mode_find("off"), ~0ULL), a->pool.pages);
	while (!(block_look_at(&a->mm, huge).flags & BLOCK_POOL))
		huge++;
	EXPECT_EQ(first_candidate(zone, "vanilla", BLOCK_ORDER, &scanned), huge);
	EXPECT_EQ(scanned, BLOCK_FRAMES);
	EXPECT_EQ(first_candidate(zone, "skip", BLOCK_ORDER, &scanned), BLOCK_NONE);
	EXPECT_EQ(scanned, a->pool.pages); /* one struct page of each huge page */
	EXPECT_EQ(migratetype_set(&a->mm, huge, 1, MIGRATE_CMA), 0);
	/* CMA blocks are always tried */
	EXPECT_EQ(first_candidate(zone, "skip", BLOCK_ORDER, &scanned), huge);
	EXPECT_EQ(first_candidate(zone, "strict", BLOCK_ORDER, &scanned), BLOCK_NONE);
	EXPECT_EQ(first_candidate(zone, "revert", BLOCK_ORDER, &scanned), BLOCK_NONE);
	EXPECT_EQ(scanned, a->pool.pages);
	EXPECT_EQ(migratetype_set(&a->mm, huge, 1, MIGRATE_MOVABLE), 0);
}

/*
 * In each range of a mapped section, hold the second page, which can move. All other pages are
 * free.
 */
static bool one_page_in_each_range(struct arena *a, u32 section_first)
{
	holder_init(&holder, &a->mm, slots, HOLDER_SLOTS);
	for (u32 range = 0; range < SMALL_RANGES; range++)
		if (!hold_some(a, block_pfn(section_first + range * order_blocks(SMALL_ORDER)), 1))
			return false;
	pcp_drain_all(&a->mm);
	return holder.slots == SMALL_RANGES;
}

/*
 * The reference of the contiguous-range series differs from the simpler fix that the series
 * mentions: a page with a reference ends the look at a range, too, even if it could be moved.
 */
TEST_ARENA(mm_contig, revert_gives_up_on_what_is_in_use, borrow_mapped())
{
	u64 scanned;

	REQUIRE(one_page_in_each_range(a, mapped));
	EXPECT_EQ(first_candidate(arena_zone(a, 0), "revert", SMALL_ORDER, &scanned), BLOCK_NONE);
	EXPECT_EQ(scanned, 2 * SMALL_RANGES);
	EXPECT_EQ(first_candidate(arena_zone(a, 0), "strict", SMALL_ORDER, &scanned), mapped);
	EXPECT_EQ(first_candidate(arena_zone(a, 0), "skip", SMALL_ORDER, &scanned), mapped);
	EXPECT_EQ(scanned, order_pages(SMALL_ORDER));
	EXPECT(!alloc_with(a, "revert"));
	EXPECT_EQ(holder.moved, 0);
	holder_give_all(&holder);
	pcp_drain_all(&a->mm);
	/* No page is in use now. */
	EXPECT_EQ(first_candidate(arena_zone(a, 0), "revert", SMALL_ORDER, &scanned), mapped);
}

/*
 * Linux 7.0 passes a free run or a compound page in one step, and a page that cannot move ends the
 * look at a range.
 */
TEST_ARENA(mm_contig, step_goes_by_the_size_of_what_it_meets, borrow_mapped())
{
	const u64 runs = order_blocks(SMALL_ORDER) / order_blocks(10); /* in a free range */
	u64 scanned;
	struct zone *zone = arena_zone(a, 0);

	EXPECT_EQ(first_candidate(zone, "step", SMALL_ORDER, &scanned), mapped);
	EXPECT_EQ(scanned, runs);
	REQUIRE(one_page_in_each_range(a, mapped));
	EXPECT_EQ(first_candidate(zone, "step", SMALL_ORDER, &scanned), mapped);
	/*
	 * The steps are pages 0, 1, 2 to 3, 4 to 7, ... 256 to 511 of the first block, then the
	 * neighbouring block, whose buddy is split, and then the other runs.
	 */
	EXPECT_EQ(scanned, 1 + BLOCK_ORDER + 1 + runs - 1);
	page_forget_mover(&a->mm, holder.page[0]);
	EXPECT_EQ(first_candidate(zone, "step", SMALL_ORDER, &scanned),
		  mapped + order_blocks(SMALL_ORDER));
	EXPECT_EQ(scanned, 2 + 1 + BLOCK_ORDER + 1 + runs - 1);
}

/* The last block of the first range is set aside (CMA). */
TEST_ARENA(mm_contig, step_passes_over_a_range_with_a_declared_block, borrow_mapped())
{
	const u32 next = mapped + order_blocks(SMALL_ORDER);
	u64 scanned;

	EXPECT_EQ(migratetype_set(&a->mm, next - 1, 1, MIGRATE_CMA), 0);
	EXPECT_EQ(first_candidate(arena_zone(a, 0), "step", SMALL_ORDER, &scanned), next);
	EXPECT_EQ(migratetype_set(&a->mm, next - 1, 1, MIGRATE_MOVABLE), 0);
	EXPECT_EQ(first_candidate(arena_zone(a, 0), "step", SMALL_ORDER, &scanned), mapped);
}

/* Every struct page of an open block gets a reference and loses it. */
TEST_ARENA(mm_contig, each_counted_page_is_frozen_again, arena_borrow(MIB(16)))
{
	struct page *pages;
	const u32 first = arena_block(a) + 2;

	REQUIRE(mm_contig_alloc_range(&a->mm, block_pfn(first), 2 * BLOCK_FRAMES) == 0);
	mm_contig_free_range(&a->mm, block_pfn(first), 2 * BLOCK_FRAMES);
	EXPECT_EQ(contig_count_and_freeze(&a->mm, first, 2), 2 * BLOCK_FRAMES);
	pages = block_page(&a->mm, first);
	for (u64 i = 0; i < 2 * BLOCK_FRAMES; i++)
		if (pages[i].refcount)
			test_fail(__FILE__, __LINE__, "frame %llu kept its reference", i);
}

/* Hold the page of this frame, which cannot move. The rest of its block is free. */
static struct page *hold_frame(struct arena *a, pfn_t pfn)
{
	const pfn_t first = ALIGN_DOWN(pfn, BLOCK_FRAMES);

	if (mm_contig_alloc_range(&a->mm, first, BLOCK_FRAMES) < 0)
		return NULL;
	for (pfn_t other = first; other < first + BLOCK_FRAMES; other++)
		if (other != pfn)
			mm_page_free(&a->mm, pfn_page(&a->mm, other));
	pcp_drain_all(&a->mm);
	return pfn_page(&a->mm, pfn);
}

TEST_ARENA(mm_contig, a_page_that_cannot_move_ends_the_look_wherever_it_is, borrow_mapped())
{
	static const char *const names[] = {"revert", "step"};
	const u64 pages = order_pages(SMALL_ORDER);
	const u64 at[] = {0, BLOCK_FRAMES / 2, BLOCK_FRAMES - 1, pages / 2, pages - 2, pages - 1};
	struct isolation token;
	u64 scanned;

	for (unsigned i = 0; i < ARRAY_LEN(at); i++) {
		struct page *page = hold_frame(a, block_pfn(mapped) + at[i]);

		REQUIRE(page);
		for (unsigned n = 0; n < ARRAY_LEN(names); n++)
			EXPECT_EQ(
				first_candidate(arena_zone(a, 0), names[n], SMALL_ORDER, &scanned),
				mapped + order_blocks(SMALL_ORDER));
		EXPECT_EQ(
			isolate_range(arena_zone(a, 0), mapped, order_blocks(SMALL_ORDER), &token),
			-EBUSY);
		mm_page_free(&a->mm, page);
		pcp_drain_all(&a->mm);
	}
}

TEST_ARENA(mm_contig, step_passes_over_huge_pages_until_there_is_nothing_else, borrow_mapped())
{
	u64 scanned;

	REQUIRE(one_huge_page_in_each_range(a, mapped));
	EXPECT_EQ(first_candidate(arena_zone(a, 0), "step", SMALL_ORDER, &scanned), mapped);
	EXPECT(scanned <= 2 * SECTION_BLOCKS);
	expect_small_range_works(a, "step");
	EXPECT(holder.moved > 0);
}

/*
 * The number of struct pages that a search reads in all ranges of an order in a zone of the
 * machine. *inside counts the proposed ranges in the GiB at `first`.
 */
static u64 read_of_all(struct zone *zone, const char *name, unsigned order, u32 first, u64 *inside)
{
	const struct contig_search *search = contig_search_find(name);
	struct contig_stats stats = {0};
	struct contig_scan scan = {.zone = zone, .order = order, .stats = &stats};
	u32 range;

	*inside = 0;
	while ((range = search->next(&scan, search)) != BLOCK_NONE)
		*inside += range >= first && range < first + GIB_BLOCKS;
	return stats.scanned;
}

/*
 * A range smaller than the page in its way may contain nothing but tails. A tail ends the look at
 * the range just as a head does.
 */
TEST(mm_contig, tails_of_a_larger_page_end_the_look)
{
	static const char *const names[] = {"skip", "strict", "revert"};
	enum { ORDER = 12 };
	const u64 ranges = order_pages(GIGA_ORDER) / order_pages(ORDER);
	struct zone *zone;
	u64 all, inside;
	u32 giga;

	if (!pool_giga_possible())
		return;
	REQUIRE(pool_grow(&pool_1g, hvo_mode_find("off"), 1) == 1);
	for (node_t node = giga = 0; node < mm_kernel.nodes; node++)
		if (pool_1g.node[node].free.head != BLOCK_NONE)
			giga = pool_1g.node[node].free.head;
	zone = block_zone(&mm_kernel, giga);
	all = read_of_all(zone, "vanilla", ORDER, giga, &inside);
	EXPECT_EQ(inside, ranges);
	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		const u64 read = read_of_all(zone, names[i], ORDER, giga, &inside);

		EXPECT_EQ(inside, 0);
		/*
		 * The search reads one struct page in each range of the GiB. Elsewhere it reads as
		 * many as vanilla does, except that a page in use ends the look of revert there,
		 * too.
		 */
		if (contig_search_find(names[i])->skips_used)
			EXPECT(all - read >= order_pages(GIGA_ORDER) - ranges);
		else
			EXPECT_EQ(all - read, order_pages(GIGA_ORDER) - ranges);
	}
	read_of_all(zone, "step", ORDER, giga, &inside);
	EXPECT_EQ(inside, 0);
	EXPECT_EQ(pool_shrink(&pool_1g, hvo_mode_find("off"), 1), 1);
	sections_close_all(&mm_kernel);
}

/*
 * A caller may ask for a range where a whole 1 GiB page of a pool lies, and the pool then takes
 * another page. A range that is only part of such a page is refused.
 */
TEST_ARENA(mm_contig, a_gigabyte_of_a_pool_makes_room_for_a_range,
	   arena_borrow(MIB(64), .phantom = GIB(2)))
{
	pfn_t first;

	EXPECT_EQ(pool_grow_on(&a->giga, hvo_on(), a->options.nodes, 1), 1);
	first = block_pfn(a->giga.node[a->options.nodes].free.head);
	EXPECT_EQ(mm_contig_alloc_range(&a->mm, first + BLOCK_FRAMES, BLOCK_FRAMES), -EBUSY);
	EXPECT(arena_accounted(a));
	EXPECT_EQ(mm_contig_alloc_range(&a->mm, first, order_pages(GIGA_ORDER)), 0);
	EXPECT_EQ(a->giga.pages, 1);
	EXPECT(block_pfn(a->giga.node[a->options.nodes].free.head) != first);
	EXPECT_EQ(block_look_at(&a->mm, (u32)(first >> BLOCK_ORDER) + GIB_BLOCKS - 1).state,
		  BLOCK_FULL);
	EXPECT(arena_accounted(a));
	/* Frames that huge pages save are kept back, but not longer than until the next range. */
	mm_contig_free_range(&a->mm, first + BLOCK_FRAMES, order_pages(GIGA_ORDER) - BLOCK_FRAMES);
	EXPECT_EQ(hvo_huge_free_full(arena_phantom_zone(a), ~0ULL), GIB_BLOCKS - 1);
	EXPECT(a->mm.node[0].meta.gated > BLOCK_FRAMES);
	mm_contig_free_range(&a->mm, first, BLOCK_FRAMES);
	EXPECT_EQ(mm_contig_alloc_range(&a->mm, first, BLOCK_FRAMES), 0);
	EXPECT_EQ(a->mm.node[0].meta.gated, 0);
	mm_contig_free_range(&a->mm, first, BLOCK_FRAMES);
}

/* ---- other CPUs ---- */

/*
 * Contiguous ranges while other CPUs work on the same memory: the states that are waited for, those
 * that are not, and the allocations that a declared range keeps out.
 */

enum { A_MOMENT = 300 * 1000 }; /* ns, many passes over a range */

/* ---- CMA ---- */

TEST_ARENA(mm_contig, what_cpus_hold_of_a_declared_range_is_not_given_out_as_before,
	   arena_borrow(MIB(32)))
{
	struct page *page[8];
	pfn_t block;

	for (unsigned i = 0; i < ARRAY_LEN(page); i++)
		REQUIRE((page[i] = mm_page_alloc(&a->mm, 0, USE_UNMOVABLE, PAGE_NODE, 0)));
	block = ALIGN_DOWN(page_to_pfn(page[0]), BLOCK_FRAMES);
	for (unsigned i = 0; i < ARRAY_LEN(page); i++)
		mm_page_free(&a->mm, page[i]);
	EXPECT_EQ(mm_contig_declare_cma(&a->mm, block, BLOCK_FRAMES), 0);
	EXPECT_EQ(pcp_count(&a->mm, arena_zone(a, 0)), 0);
	for (unsigned i = 0; i < ARRAY_LEN(page); i++) {
		REQUIRE((page[i] = mm_page_alloc(&a->mm, 0, USE_UNMOVABLE, PAGE_NODE, 0)));
		EXPECT(ALIGN_DOWN(page_to_pfn(page[i]), BLOCK_FRAMES) != block);
	}
	EXPECT(arena_accounted(a));
	EXPECT_EQ(mm_contig_alloc_range(&a->mm, block, BLOCK_FRAMES), 0);
	mm_contig_free_range(&a->mm, block, BLOCK_FRAMES);
}

TEST_ARENA(mm_contig, a_declared_range_is_no_part_of_a_gigabyte_page, borrow_gigabyte())
{
	EXPECT_EQ(
		mm_contig_declare_cma(&a->mm, block_pfn(arena_phantom_block(a) + AT), BLOCK_FRAMES),
		0);
	EXPECT_EQ(pool_grow_on(&a->giga, hvo_on(), a->options.nodes, 1), 0);
	EXPECT(!mm_page_alloc(&a->mm, GIGA_ORDER, USE_UNMOVABLE, PAGE_NODE, a->options.nodes));
	EXPECT_EQ(listed(arena_phantom_zone(a), MIGRATE_CMA), BLOCK_FRAMES);
	EXPECT(arena_accounted(a));
	EXPECT_EQ(migratetype_set(&a->mm, arena_phantom_block(a) + AT, 1, MIGRATE_MOVABLE), 0);
	EXPECT_EQ(pool_grow_on(&a->giga, hvo_on(), a->options.nodes, 1), 1);
	EXPECT(arena_accounted(a));
	EXPECT_EQ(pool_shrink(&a->giga, hvo_on(), 1), 1);
}

/* ---- waiting ---- */

static void publish_slowly(void *arg)
{
	struct arena *a = arg;
	struct block_list list = BLOCK_LIST_INIT;

	block_list_push(&a->mm, &list, arena_phantom_block(a) + AT);
	clock_delay_ns(A_MOMENT);
	block_list_publish_free(&a->mm, &list);
}

/*
 * A pool page in the range is on its way back to the buddy. Restoring it takes longer than five
 * passes over the range.
 */
TEST_ARENA(mm_contig, what_is_in_transit_in_the_range_is_waited_for,
	   cpus_needed(2) ? borrow_gigabyte() : NULL)
{
	struct migrate_stats stats = {0};
	const cpu_t other = cpus_find_other();
	struct zone *zone = arena_phantom_zone(a);
	const u32 index = arena_phantom_block(a) + AT;
	struct isolation token;

	EXPECT_EQ(isolate_range(zone, index, 4, &token), 0);
	spin_lock(&zone->lock); /* a page that is being given back is off its list and in transit */
	buddy_unlink_within(zone, buddy_find_run(&a->mm, index), index, index + 1);
	block_begin(zone, index, BLOCK_ORDER, BLOCK_BARE);
	spin_unlock(&zone->lock);
	REQUIRE(work_start(other, publish_slowly, a) == 0);
	EXPECT_EQ(migrate_range(zone, index, 4, &(struct migrate_how){.giga = MIGRATE_KEEP_GIGA},
				&stats),
		  0);
	work_wait(other, 0);
	isolate_undo(zone, &token);
	EXPECT(one_free_gigabyte(zone));
}

/* This CPU holds pages of the range on its list. Nothing else is in the way. */
TEST_ARENA(mm_contig, what_lists_of_cpus_hold_of_the_range_goes_back, borrow_gigabyte())
{
	struct migrate_stats stats = {0};
	struct page *page = take_phantom(a, 0);
	struct zone *zone = arena_phantom_zone(a);
	struct isolation token;

	REQUIRE(page);
	mm_page_free(&a->mm, page);
	EXPECT(pcp_count(&a->mm, zone) > 0);
	EXPECT_EQ(isolate_range(zone, block_of_page(page), 1, &token), 0);
	EXPECT_EQ(migrate_range(zone, block_of_page(page), 1,
				&(struct migrate_how){.giga = MIGRATE_KEEP_GIGA}, &stats),
		  0);
	isolate_undo(zone, &token);
}

TEST_ARENA(mm_contig, a_page_that_moved_has_no_references, borrow_gigabyte())
{
	struct contig_stats stats = {0};
	struct block_list list = BLOCK_LIST_INIT;
	const struct page *page;

	hold_phantom(a);
	REQUIRE(holder_take(&holder, 0, a->options.nodes));
	page = holder.page[0];
	EXPECT_EQ(contig_take(arena_phantom_zone(a), block_of_page(page), 1,
			      &(struct migrate_how){.giga = MIGRATE_KEEP_GIGA}, &list, &stats),
		  0);
	EXPECT_EQ(stats.moved.pages, 1);
	EXPECT_EQ(page->refcount, 0);
	block_list_publish_free(&a->mm, &list);
}

/*
 * One GiB is free, and one is full. After the free one is taken, nothing can be moved, and the CPU
 * must not wait for the GiB that it holds itself.
 */
TEST_ARENA(mm_contig, nobody_waits_for_what_it_holds_itself,
	   arena_borrow(MIB(32), .phantom = GIB(2)))
{
	struct block_list list = {.head = BLOCK_NONE, .tail = BLOCK_NONE};
	u32 full;

	test_option("contig", "index"); /* the other searches read mapped sections only */
	hold_phantom(a);
	while (holder_take(&holder, BLOCK_ORDER, a->options.nodes))
		;
	full = block_of_page(holder.page[0]) / GIB_BLOCKS * GIB_BLOCKS;
	for (u64 slot = 0; slot < holder.slots; slot++)
		if ((page_to_pfn(holder.page[slot]) >> BLOCK_ORDER) - full >= GIB_BLOCKS)
			holder_give(&holder, slot);
	/* The other node has no free memory, either. */
	while (mm_page_alloc(&a->mm, BLOCK_ORDER, USE_UNMOVABLE, PAGE_NODE, 0))
		;
	pcp_drain_all(&a->mm);
	said_begin();
	EXPECT_EQ(pool_grow_on(&a->giga, hvo_on(), a->options.nodes, 2), 1);
	EXPECT_EQ(a->mm.transit_kept, 0);
	EXPECT_EQ(pool_shrink(&a->giga, hvo_on(), 1), 1);
	/* nothing is moved there, because no GiB is left; so ask as a page that moves would */
	EXPECT_EQ(contig_take_giga(arena_phantom_zone(a), hvo_on(), 1, &list), 1);
	a->mm.transit_kept = order_pages(GIGA_ORDER);
	EXPECT(!mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, 0, a->options.nodes));
	a->mm.transit_kept = 0;
	block_list_publish_free(&a->mm, &list);
	said_end();
	EXPECT(!said_says("waiting for memory that other CPUs are changing"));
}

/* Look for one page more, in vain, with a list that says that there is one. */
static void take_in_vain(void *arg)
{
	struct block_list list = {.head = BLOCK_NONE, .tail = BLOCK_NONE, .count = 1};

	EXPECT_EQ(contig_take_giga(arena_phantom_zone(arg), hvo_mode_find("on"), 1, &list), 0);
}

static const struct mm *looked_at;
static u64 kept; /* during the last move */

static int look_and_refuse(struct page *from, struct page *to)
{
	kept = looked_at->transit_kept;
	return -EBUSY;
}

static const struct page_mover mover_looks = {.name = "looks", .move = look_and_refuse};

TEST_ARENA(mm_contig, what_several_cpus_keep_while_they_look_for_more_is_counted, arena_usual())
{
	struct page *page = take_phantom(a, 0);
	struct isolation token;

	REQUIRE(page);
	test_option("contig", "index");
	arena_open_all(a);
	looked_at = &a->mm;
	kept = 0;
	mm_page_set_movable(&a->mm, page, &mover_looks);
	take_in_vain(a);
	EXPECT_EQ(kept, order_pages(GIGA_ORDER));
	mm_page_free(&a->mm, page);
	EXPECT_EQ(isolate_range(arena_phantom_zone(a), arena_phantom_block(a), 1, &token), 0);
	cpus_run_together(take_in_vain, a);
	isolate_undo(arena_phantom_zone(a), &token);
	EXPECT_EQ(a->mm.transit_kept, 0);
}
