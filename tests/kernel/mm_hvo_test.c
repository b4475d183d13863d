/*
 * HVO: the exact number of rounds that each mode takes, and the state that it leaves behind.
 *
 * Rounds are counted for the whole machine. Nothing else runs, so the difference of two readings
 * belongs to the case.
 */
#include "mm/hugetlb/pool_use.h"
#include "mm/hvo/hvo_restore.h"
#include "mm/hvo/hvo_take.h"
#include "tests/kernel/mm_test.h"

/* The first block of the pool's free list. */
static u32 pool_block(struct arena *a, node_t node)
{
	return a->pool.node[node].free.head;
}

TEST_ARENA(mm_hvo, huge_blocks_become_bare_in_one_round, arena_borrow(MIB(2), .phantom = GIB(1)))
{
	u64 before, memmap_bytes;

	arena_open_all(a);
	memmap_bytes = arena_usage(a).memmap_bytes;
	EXPECT_EQ(pool_grow(&a->pool, hvo_on(), 30), 30);
	EXPECT_EQ(arena_usage(a).memmap_bytes, memmap_bytes + 30 * PAGE_SIZE);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), 30), 30);
	before = rounds_so_far();
	EXPECT_EQ(hvo_bare_free_huge(arena_phantom_zone(a), ~0ULL), 30);
	EXPECT_EQ(rounds_so_far() - before, 1);
	EXPECT_EQ(arena_phantom_zone(a)->free_class[FREE_HUGE], 0);
	meta_end_batch(&a->mm.node[0]);
	EXPECT_EQ(arena_usage(a).gated, 0);
	EXPECT_EQ(arena_usage(a).memmap_bytes, memmap_bytes); /* every head came back */
}

TEST_ARENA(mm_hvo, full_blocks_become_bare_only_in_the_range_named, arena_usual())
{
	u32 index = arena_phantom_block(a) + GIB_BLOCKS - 1;

	REQUIRE(full_blocks_make(a, 2));
	while (block_look_any(&a->mm, index).state != BLOCK_FULL)
		index--;
	EXPECT(hvo_bare_in(arena_phantom_zone(a), index, 1));
	EXPECT_EQ(block_look_at(&a->mm, index).state, BLOCK_BARE);
	EXPECT_EQ(arena_phantom_zone(a)->free_class[FREE_FULL], BLOCK_FRAMES);
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
	EXPECT_EQ(hvo_restore(&a->mm, hvo_on(), &list, &done, &restored), 0);
	EXPECT_EQ(rounds_so_far() - before, 1);
	EXPECT_EQ(restored, 4);
	block_list_foreach(&a->mm, index, &done)
		hvo_forget_head(&a->mm, index);
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

/* ---- page_alloc() in every mode ---- */

/*
 * page_alloc() of order 9 and 18 in every mode of hvo_modes[]: the page is made as hvo= says, is
 * freed as that mode does it, and can be had in whatever state free memory is.
 *
 *   off             FULL, formed to its last tail       no round
 *   the others      HUGE, shared tails, mapped section  a round each; restored when it is freed,
 *                   with one more
 *   on              HUGE, as it is found                no round where it was bare; stays HUGE
 */

enum { FAULTS_MAX = 40 };

/*
 * Check the head and every tail of a page in use. In tails outside the shared page, the first 16
 * bytes are defined.
 */
static void expect_struct_pages(const struct page *page, unsigned order, bool shared, u8 zone)
{
	const struct page tail = {.head_mask = head_mask_of(order),
				  .flags = PAGE_TAIL,
				  .order = (u8)order,
				  .zone = zone};
	const struct page head = {.head_mask = head_mask_of(0),
				  .order = (u8)order,
				  .zone = zone,
				  .refcount = 1,
				  .flags = shared ? PAGE_COMPOUND | PAGE_OPTIMISED : PAGE_COMPOUND};

	if (!struct_page_says(page, head, MEANT))
		return;
	for (u64 i = 1; i < order_pages(order); i++)
		if (!struct_page_says(page + i, tail,
				      shared && i >= STRUCTS_PER_FRAME ? WHOLE : MEANT))
			return;
}

static void expect_as_mode_has_it(struct mm *mm, const struct hvo_mode *mode, struct page *page,
				  unsigned order)
{
	const u32 index = block_of_page(page);
	const struct block_word word = block_look_at(mm, index);

	EXPECT_EQ(word.state, (mode->make != hvo_form) ? BLOCK_HUGE : BLOCK_FULL);
	EXPECT_EQ(word.order, order);
	EXPECT_EQ(!!(word.flags & BLOCK_MAPPED), mode->mapped);
	expect_struct_pages(page, order, (mode->make != hvo_form), word.zone);
	if (mode->make != hvo_form)
		EXPECT(huge_line_right(mm, index, order));
}

/* ---- 2 MiB ---- */

/* May a CPU keep a huge page? With very many CPUs, the share of each is less than a page. */
static bool cpus_keep_pages(const struct zone *zone)
{
	return zone->ram / PCP_SHARE / cpu_count >= BLOCK_FRAMES;
}

/* Allocate one page twice in an arena. The first one splits the PMD. */
static void one_page_each_turn(struct arena *a, const struct hvo_mode *mode)
{
	for (u64 turn = 0; turn < 2 && !test_failed(); turn++) {
		const u64 splits = mode->mapped && (mode->make != hvo_form) && turn == 0;
		u64 before = rounds_so_far();
		struct page *page = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, 0, 0);
		u32 index;

		REQUIRE(page);
		index = block_of_page(page);
		EXPECT_EQ(rounds_so_far() - before,
			  mode->mapped && (mode->make != hvo_form) ? 1 + splits : 0);
		EXPECT_EQ(mm_counted(&a->mm, COUNT_PMD_SPLITS),
			  mode->mapped && (mode->make != hvo_form));
		expect_as_mode_has_it(&a->mm, mode, page, BLOCK_ORDER);
		EXPECT_EQ(arena_usage(a).in_use, BLOCK_FRAMES);
		EXPECT(arena_accounted(a));
		before = rounds_so_far();
		mm_page_free(&a->mm, page);
		EXPECT_EQ(rounds_so_far() - before, mode->mapped && (mode->make != hvo_form));
		EXPECT_EQ(block_look_at(&a->mm, index).state,
			  mode->mapped ? BLOCK_FULL : BLOCK_HUGE);
		EXPECT_EQ(arena_usage(a).in_use, 0);
		EXPECT_EQ(pcp_count(&a->mm, arena_zone(a, 0)) > 0,
			  !mode->mapped && cpus_keep_pages(arena_zone(a, 0)));
		EXPECT(arena_accounted(a));
	}
}

TEST(mm_hvo, a_page_is_allocated_as_its_mode_has_it)
{
	hvo_in_each_mode(MIB(256), one_page_each_turn);
}

/*
 * Allocate pages until there are none, as a chain. All memory is in sections opened on demand.
 * Returns the number of pages.
 */
static u64 take_all_on_demand(struct arena *a, unsigned request, struct page **chain)
{
	u64 count = 0;
	struct page *page;

	while ((page = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, request, 0))) {
		EXPECT_EQ(block_look_at(&a->mm, block_of_page(page)).state, BLOCK_HUGE);
		page_chain_push(chain, page);
		count++;
	}
	return count;
}

/*
 * Where no memory is in the state that a baseline needs, its pages are made as hvo=on makes them.
 * No CPU keeps them when they are freed.
 */
static void expect_pages_on_demand(struct arena *a, const struct hvo_mode *mode)
{
	struct page *chain = NULL;
	u64 free, taken;

	if (!mode->mapped)
		return;
	arena_open_all(a);
	free = arena_available(a);
	taken = take_all_on_demand(a, 0, &chain);
	EXPECT(taken >= SECTION_BLOCKS);
	EXPECT(free - taken * BLOCK_FRAMES < 2 * BLOCK_FRAMES);
	chain_give(&chain, &a->mm);
	EXPECT_EQ(arena_zone(a, 0)->free_class[FREE_HUGE], taken * BLOCK_FRAMES);
	/* the pages are formed already */
	EXPECT_EQ(take_all_on_demand(a, PAGE_NOFLUSH, &chain), taken);
	chain_give(&chain, &a->mm);
	EXPECT(arena_accounted(a));
}

TEST(mm_hvo, memory_in_any_state_serves_a_page_in_every_mode)
{
	hvo_in_each_mode(MIB(256), expect_pages_on_demand);
}

/*
 * One failure happens while a page is allocated, then one while it is freed. *full is set if the
 * page could not be optimised. Returns true if either failure was met.
 */
static bool page_with_fault(struct arena *a, u32 fault, bool *full)
{
	struct page *page;
	bool met;

	fail_arm(&a->mm.fail, FAIL_META, fault, FAIL_ONCE);
	page = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, 0, 0);
	met = fail_disarm(&a->mm.fail);
	if (!page) {
		test_fail(__FILE__, __LINE__, "no page with failure %u", fault);
		return false;
	}
	*full |= block_look_at(&a->mm, block_of_page(page)).state == BLOCK_FULL;
	expect_struct_pages(page, BLOCK_ORDER, page->flags & PAGE_OPTIMISED, page->zone);
	EXPECT(arena_accounted(a));
	fail_arm(&a->mm.fail, FAIL_META, fault, FAIL_ONCE);
	mm_page_free(&a->mm, page);
	met |= fail_disarm(&a->mm.fail);
	EXPECT_EQ(arena_usage(a).in_use, 0);
	EXPECT(arena_accounted(a));
	return met;
}

/*
 * If there is no frame for a page table, the page has all its struct pages. If there are no frames
 * for its struct pages when it is freed, the page is free and stays huge.
 */
TEST(mm_hvo, a_page_is_there_whatever_reservation_fails)
{
	bool met = true, full = false;
	u32 fault;

	test_option("hvo", "batched");
	for (fault = 1; met && fault < FAULTS_MAX && !test_failed(); fault++) {
		struct arena *a = arena_borrow(MIB(256));

		if (!a)
			return;
		met = page_with_fault(a, fault, &full);
		arena_return(a);
	}
	EXPECT(!met);
	EXPECT(fault > 3);
	EXPECT(full);
}

/* ---- 1 GiB, from the machine's own memory, because no arena is that large ---- */

static void giga_as_mode_has_it(struct arena *none, const struct hvo_mode *mode)
{
	struct page *page;
	u32 index;

	sections_close_all(&mm_kernel);
	page = page_alloc(GIGA_ORDER, USE_MOVABLE, 0, NODE_NONE);
	REQUIRE(page);
	index = block_of_page(page);
	expect_as_mode_has_it(&mm_kernel, mode, page, GIGA_ORDER);
	EXPECT(account_machine());
	page_free(page);
	EXPECT_EQ(block_look_at(&mm_kernel, index).state, mode->mapped ? BLOCK_FULL : BLOCK_HUGE);
	EXPECT(account_machine());
}

TEST(mm_giga, one_is_allocated_as_its_mode_has_it)
{
	if (!pool_giga_possible())
		return;
	hvo_in_each_mode(0, giga_as_mode_has_it);
	sections_close_all(&mm_kernel);
}
