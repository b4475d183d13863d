/*
 * Contiguous ranges: a range is emptied and the contents of its pages survive, or everything stays
 * as it was.
 */
#include "mm/hugetlb/pool_move.h"
#include "tests/kernel/mm_test.h"

/* RANGE_AT, RANGE_BLOCKS: blocks of a small arena's real memory */
enum { RANGE_AT = 2, RANGE_BLOCKS = 3, FAULTS_MAX = 1000 };

enum { HOLDER_SLOTS = 2048 };

static struct page *slots[HOLDER_SLOTS];
static struct holder holder; /* the holder of the case that runs */

static pfn_t range_start(const struct arena *a)
{
	return block_pfn(arena_block(a) + RANGE_AT);
}

static int take(struct arena *a)
{
	return mm_contig_alloc_range(&a->mm, range_start(a), RANGE_BLOCKS * BLOCK_FRAMES);
}

static bool nothing_isolated(struct arena *a)
{
	for (unsigned z = 0; z < a->mm.zones; z++)
		if (a->mm.zone[z].free_type[MIGRATE_ISOLATE])
			return false;
	for (u32 i = arena_block(a); i < arena_block(a) + (a->options.bytes >> BLOCK_SHIFT); i++)
		if (block_word_is_isolated(block_look(block_at(&a->mm, i))))
			return false;
	return true;
}

/*
 * Allocate small movable pages all over the first blocks of an arena and hold a sixteenth of them.
 */
static bool scatter(struct arena *a, u64 pages)
{
	static struct page *page[HOLDER_SLOTS * 4];
	bool ok = true;

	holder_init(&holder, &a->mm, slots, HOLDER_SLOTS);
	for (u64 i = 0; i < pages; i++)
		ok &= (page[i] = mm_page_alloc(&a->mm, i % 3, USE_MOVABLE, PAGE_NODE, 0)) != NULL;
	for (u64 i = 0; i < pages && ok; i++) {
		if (i % 16 == 5)
			ok = holder_adopt(&holder, page[i]);
		else
			mm_page_free(&a->mm, page[i]);
	}
	return ok;
}

TEST_ARENA(mm_contig, a_range_is_emptied_and_contents_survive, arena_borrow(MIB(16)))
{
	u64 inside;

	REQUIRE(scatter(a, 1200));
	inside = holder_pages_in(&holder, range_start(a),
				 range_start(a) + RANGE_BLOCKS * BLOCK_FRAMES);
	EXPECT(inside > 0);
	EXPECT_EQ(take(a), 0);
	EXPECT_EQ(holder_pages_in(&holder, range_start(a),
				  range_start(a) + RANGE_BLOCKS * BLOCK_FRAMES),
		  0);
	EXPECT(holder.moved >= inside);
	EXPECT(holder_intact(&holder));
	for (u64 i = 0; i < RANGE_BLOCKS * BLOCK_FRAMES; i++) {
		struct page *page = pfn_page(&a->mm, range_start(a) + i);

		if (page->refcount != 1 || page_head(page) != page || page_order(page) != 0)
			test_fail(__FILE__, __LINE__, "frame %llu of the range is no single page",
				  i);
		memset(phys_to_virt((range_start(a) + i) << PAGE_SHIFT), 0xee, PAGE_SIZE);
	}
	EXPECT(holder_intact(&holder));
	EXPECT(nothing_isolated(a));
	EXPECT(arena_accounted(a));
	/* Pages of a range may be freed singly or as ranges. */
	mm_page_free(&a->mm, pfn_page(&a->mm, range_start(a) + 5));
	for (u64 i = 0; i < BLOCK_FRAMES; i++)
		if (i != 5)
			mm_page_free(&a->mm, pfn_page(&a->mm, range_start(a) + i));
	mm_contig_free_range(&a->mm, range_start(a) + BLOCK_FRAMES,
			     (RANGE_BLOCKS - 1) * BLOCK_FRAMES);
	holder_give_all(&holder);
	pcp_drain_all(&a->mm);
	EXPECT(arena_small_lists_whole(a));
	EXPECT_EQ(arena_usage(a).in_use, 0);
}

/*
 * Hold one page of each order in a range that is emptied. The page must arrive with all its bytes
 * and its three private words.
 */
TEST_ARENA(mm_contig, a_page_of_any_order_arrives_with_all_its_bytes, arena_borrow(MIB(32)))
{
	holder_init(&holder, &a->mm, slots, HOLDER_SLOTS);
	for (unsigned order = 0; order <= BLOCK_ORDER && !test_failed(); order++) {
		struct page *page = mm_page_alloc(&a->mm, order, USE_MOVABLE, PAGE_NODE, 0);
		const u64 slot = holder.slots;
		pfn_t first;

		REQUIRE(page && holder_adopt(&holder, page));
		page->private[2] = ~0ULL - order;
		first = ALIGN_DOWN(page_to_pfn(page), BLOCK_FRAMES);
		REQUIRE(mm_contig_alloc_range(&a->mm, first, BLOCK_FRAMES) == 0);
		EXPECT(holder.page[slot] != page);
		EXPECT_EQ(page_order(holder.page[slot]), order);
		EXPECT_EQ(holder.page[slot]->private[2], ~0ULL - order);
		memset(phys_to_virt(first << PAGE_SHIFT), 0xee, BLOCK_FRAMES * PAGE_SIZE);
		EXPECT(holder_intact(&holder));
		mm_contig_free_range(&a->mm, first, BLOCK_FRAMES);
	}
	EXPECT(holder.moved > BLOCK_ORDER);
}

/* A page that moved stays as long as somebody else refers to it; the others of its block leave. */
TEST_ARENA(mm_contig, what_moved_is_freed_when_nobody_refers_to_it, arena_borrow(MIB(16)))
{
	const pfn_t first = range_start(a), end = first + RANGE_BLOCKS * BLOCK_FRAMES;
	struct page *page;
	u64 slot = 0;

	REQUIRE(scatter(a, 1200));
	while (slot < holder.slots && (page_to_pfn(holder.page[slot]) - first >= end - first ||
				       page_order(holder.page[slot]) > 0))
		slot++;
	REQUIRE(slot < holder.slots);
	page = holder.page[slot];
	page_get(page);
	EXPECT_EQ(take(a), -EBUSY);
	EXPECT_EQ(holder_pages_in(&holder, first, end), 0);
	EXPECT_EQ(page->refcount, 1);
	EXPECT(holder_intact(&holder));
	EXPECT(arena_accounted(a));
	mm_page_put(&a->mm, page);
	EXPECT_EQ(take(a), 0);
	EXPECT(arena_accounted(a));
	mm_contig_free_range(&a->mm, first, end - first);
}

static struct {
	struct mm *mm;
	pfn_t bad;
	struct page *moved[3];
	unsigned moves;
	bool pending; /* the frame, at the last move */
} faulty;

/* The first move finds out that a frame of the range is bad. */
static int move_and_mark(struct page *from, struct page *to)
{
	if (faulty.moves == 0)
		EXPECT_EQ(mm_mark_bad(faulty.mm, faulty.bad), -EBUSY);
	faulty.pending = bad_frames_pending(faulty.mm, faulty.bad, 1);
	faulty.moved[faulty.moves++] = to;
	return 0;
}

static const struct page_mover mover_marks = {.name = "marks", .move = move_and_mark};

/* A frame found bad while its block is emptied is no part of the range, whichever page it was. */
static void find_bad_frame(struct arena *a, u64 bad)
{
	static const u64 at[] = {10, 11, 12};
	const pfn_t first = range_start(a);

	REQUIRE(mm_contig_alloc_range(&a->mm, first, BLOCK_FRAMES) == 0);
	for (u64 i = 0; i < BLOCK_FRAMES; i++)
		if (i < at[0] || i > at[2])
			mm_page_free(&a->mm, pfn_page(&a->mm, first + i));
	for (unsigned i = 0; i < ARRAY_LEN(at); i++)
		mm_page_set_movable(&a->mm, pfn_page(&a->mm, first + at[i]), &mover_marks);
	faulty.mm = &a->mm;
	faulty.bad = first + bad;
	faulty.moves = 0;
	EXPECT_EQ(mm_contig_alloc_range(&a->mm, first, BLOCK_FRAMES), -EBUSY);
	REQUIRE(faulty.moves == ARRAY_LEN(at));
	EXPECT_EQ(arena_usage(a).bad, 1);
	EXPECT(!bad_frames_pending(&a->mm, 0, ~0ULL));
	for (unsigned i = 0; i < ARRAY_LEN(at); i++)
		mm_page_free(&a->mm, faulty.moved[i]);
	EXPECT(nothing_isolated(a));
	EXPECT(arena_accounted(a));
}

TEST_ARENA(mm_contig, a_frame_found_bad_while_it_moves_is_in_no_range, arena_borrow(MIB(16)))
{
	find_bad_frame(a, 10);
	EXPECT(!faulty.pending); /* it was withdrawn when the next page was freed */
}

TEST_ARENA(mm_contig, a_frame_found_bad_before_it_moves_is_in_no_range, arena_borrow(MIB(16)))
{
	find_bad_frame(a, 12);
	EXPECT(faulty.pending);
}

static struct {
	struct mm *mm;
	int (*find)(struct mm *mm, pfn_t pfn);
	pfn_t bad;
	struct page *moved[6];
	unsigned moves;
} ahead;

static int report(struct mm *mm, pfn_t pfn)
{
	mm_report_bad(mm, pfn);
	return 0;
}

/* The second move finds out that the free frame after the one it moves to is bad. */
static int move_and_find(struct page *from, struct page *to)
{
	EXPECT(page_to_pfn(to) != ahead.bad);
	ahead.moved[ahead.moves++] = to;
	if (ahead.moves == 2) {
		ahead.bad = page_to_pfn(to) + 1;
		ahead.find(ahead.mm, ahead.bad);
	}
	return 0;
}

static const struct page_mover mover_finds = {.name = "finds", .move = move_and_find};

static void find_bad_ahead(struct arena *a, int (*find)(struct mm *mm, pfn_t pfn))
{
	const pfn_t first = range_start(a);

	REQUIRE(mm_contig_alloc_range(&a->mm, first, BLOCK_FRAMES) == 0);
	for (u64 i = ARRAY_LEN(ahead.moved); i < BLOCK_FRAMES; i++)
		mm_page_free(&a->mm, pfn_page(&a->mm, first + i));
	for (unsigned i = 0; i < ARRAY_LEN(ahead.moved); i++)
		mm_page_set_movable(&a->mm, pfn_page(&a->mm, first + i), &mover_finds);
	ahead.mm = &a->mm;
	ahead.find = find;
	ahead.bad = PFN_NONE;
	ahead.moves = 0;
	EXPECT_EQ(mm_contig_alloc_range(&a->mm, first, BLOCK_FRAMES), 0);
	REQUIRE(ahead.moves == ARRAY_LEN(ahead.moved));
	for (unsigned i = 0; i < ARRAY_LEN(ahead.moved); i++)
		mm_page_free(&a->mm, ahead.moved[i]);
	EXPECT_EQ(arena_usage(a).bad, 1);
	EXPECT(nothing_isolated(a));
	EXPECT(arena_accounted(a));
	mm_contig_free_range(&a->mm, first, BLOCK_FRAMES);
}

/* Pages to move to are taken ahead of their use, and one may be found bad in between. */
TEST_ARENA(mm_contig, nothing_moves_to_a_frame_found_bad_meanwhile, arena_borrow(MIB(16)))
{
	find_bad_ahead(a, mm_mark_bad);
	if (!test_failed())
		EXPECT_EQ(mm_mark_bad(&a->mm, ahead.bad), 0);
}

TEST_ARENA(mm_contig, nothing_moves_to_a_frame_reported_meanwhile, arena_borrow(MIB(16)))
{
	find_bad_ahead(a, report);
}

/* Nothing is freed that somebody else still refers to, wherever in its block it is. */
TEST_ARENA(mm_contig, a_range_given_back_leaves_out_pages_with_references, arena_borrow(MIB(16)))
{
	static const u64 at[] = {0, BLOCK_FRAMES / 2, BLOCK_FRAMES - 1};
	const u64 before = page_misuses();

	test_option("debug.bad_free", "keep");
	for (unsigned i = 0; i < ARRAY_LEN(at); i++) {
		struct page *page = pfn_page(&a->mm, range_start(a) + at[i]);

		REQUIRE(mm_contig_alloc_range(&a->mm, range_start(a), BLOCK_FRAMES) == 0);
		page_get(page);
		mm_contig_free_range(&a->mm, range_start(a), BLOCK_FRAMES);
		EXPECT_EQ(page_misuses(), before + i + 1);
		EXPECT_EQ(page->refcount, 2);
		pcp_drain_all(&a->mm);
		EXPECT_EQ(arena_usage(a).in_use, 1);
		mm_page_put(&a->mm, page);
		mm_page_free(&a->mm, page);
		pcp_drain_all(&a->mm);
		EXPECT_EQ(arena_usage(a).in_use, 0);
	}
}

TEST_ARENA(mm_contig, impossible_ranges_are_refused,
	   arena_borrow(MIB(32), .nodes = 2, .hole = {{MIB(20), MIB(4)}}))
{
	const u64 first = block_pfn(arena_block(a)), block = BLOCK_FRAMES;
	const struct {
		u64 start, frames;
		int err;
	} bad[] = {
		{first + block, 0, -EINVAL},
		{first + block + 1, block, -EINVAL},
		{first + block, block + 1, -EINVAL},
		{0, block, -EINVAL},
		{~0ULL - block + 1, block, -EINVAL},
		{first + 7 * block, 4 * block, -EINVAL}, /* the range has two zones */
		{first + 9 * block, 2 * block, -EINVAL}, /* the range contains a hole */
		{first, 2 * block, -EBUSY},              /* metadata memory lies in the range */
	};

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		EXPECT_EQ(mm_contig_alloc_range(&a->mm, bad[i].start, bad[i].frames), bad[i].err);
		if (!row_passed("range %u", i))
			return;
	}
	EXPECT(!mm_contig_alloc(&a->mm, GIGA_ORDER + 1, 0));
	EXPECT(nothing_isolated(a));
}

/* No block is free, but one can be emptied. */
TEST_ARENA(mm_contig, room_is_made_for_a_single_block, arena_borrow(MIB(16)))
{
	struct page *page;

	test_option("contig", "index"); /* the other searches read mapped sections only */
	REQUIRE(scatter(a, 1200));
	EXPECT(!mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, 0, 0));
	page = mm_contig_alloc(&a->mm, BLOCK_ORDER, 0);
	REQUIRE(page);
	EXPECT_EQ(page_order(page), BLOCK_ORDER);
	EXPECT(holder.moved > 0);
	EXPECT(holder_intact(&holder));
	EXPECT(nothing_isolated(a));
}

/* ---- pool pages ---- */

TEST_ARENA(mm_contig, a_pool_keeps_its_pages_elsewhere, arena_borrow(MIB(32)))
{
	struct contig_stats stats = {0};
	struct page *used;
	pfn_t first;

	pool_makes_on_demand();
	holder_init(&holder, &a->mm, slots, HOLDER_SLOTS);
	EXPECT_EQ(pool_grow(&a->pool, hvo_on(), 6), 6);
	used = pool_page_take(&a->pool, 0, POOL_ANY);
	REQUIRE(used && holder_adopt(&holder, used));
	EXPECT_EQ(pool_reserve(&a->pool, 2), 0);
	first = page_to_pfn(used);
	holder.refuse = ~0U; /* the page stays as it is while its holder refuses */
	EXPECT_EQ(mm_contig_alloc_range(&a->mm, first, BLOCK_FRAMES), -EBUSY);
	EXPECT(holder.page[0] == used && holder_intact(&holder));
	EXPECT_EQ(used->refcount, 1);
	EXPECT_EQ(a->pool.in_use, 1);
	EXPECT(account_pool(&a->pool));
	EXPECT(nothing_isolated(a));
	holder.refuse = 0;
	REQUIRE(contig_take_range(arena_zone(a, 0), (u32)(first >> BLOCK_ORDER), 1,
				  MIGRATE_MOVE_GIGA, &stats) == 0);
	EXPECT_EQ(stats.moved.pages, BLOCK_FRAMES);
	EXPECT(holder.page[0] != used && holder_intact(&holder));
	pool_expect_counts(&a->pool, 6, 1, 0);
	EXPECT(arena_accounted(a));
	mm_contig_free_range(&a->mm, first, BLOCK_FRAMES);

	first = block_pfn(a->pool.node[0].free.head);
	stats = (struct contig_stats){0};
	REQUIRE(contig_take_range(arena_zone(a, 0), (u32)(first >> BLOCK_ORDER), 1,
				  MIGRATE_MOVE_GIGA, &stats) == 0);
	EXPECT_EQ(stats.moved.pages, 0); /* there was nothing to copy */
	EXPECT_EQ(stats.moved.pooled, BLOCK_FRAMES);
	pool_expect_counts(&a->pool, 6, 1, 0);
	EXPECT_EQ(a->pool.reserved, 2);
	EXPECT(arena_accounted(a));
	mm_contig_free_range(&a->mm, first, BLOCK_FRAMES);
	pool_page_give(&a->pool, holder.page[0]);
	EXPECT(nothing_isolated(a));
}

/* The node of the page is full, so the page moves to the other node and is surplus there. */
TEST_ARENA(mm_contig, a_surplus_page_that_moves_to_another_node_is_surplus_there,
	   arena_borrow(MIB(32), .nodes = 2))
{
	struct page *used, *chain = NULL;
	struct migrate_stats stats = {0};
	u32 index;

	pool_makes_on_demand();
	a->pool.overcommit = 1;
	holder_init(&holder, &a->mm, slots, HOLDER_SLOTS);
	used = pool_page_take(&a->pool, 1, POOL_ANY);
	REQUIRE(used);
	index = block_of_page(used);
	/* the page has no holder that could move it */
	EXPECT_EQ(pool_move_page(&a->mm, index, BLOCK_ORDER, &stats), -EBUSY);
	REQUIRE(holder_adopt(&holder, used));
	EXPECT_EQ(a->pool.node[1].surplus, 1);
	chain_take_all(&chain, &a->mm, BLOCK_ORDER, PAGE_NODE, 1);
	EXPECT_EQ(pool_move_page(&a->mm, index, BLOCK_ORDER, &stats), 0);
	EXPECT_EQ(stats.pages, BLOCK_FRAMES);
	EXPECT(holder.page[0] != used && holder_intact(&holder));
	EXPECT_EQ(a->pool.node[1].surplus, 0);
	EXPECT_EQ(a->pool.node[1].pages, 0);
	EXPECT_EQ(a->pool.node[0].surplus, 1);
	EXPECT(account_pool(&a->pool));
	pool_page_give(&a->pool, holder.page[0]);
	EXPECT_EQ(a->pool.pages, 0);
}

/* ---- CMA ---- */

TEST_ARENA(mm_contig, a_declared_range_can_always_be_emptied, arena_borrow(MIB(16)))
{
	u64 taken = 0;

	holder_init(&holder, &a->mm, slots, HOLDER_SLOTS);
	EXPECT_EQ(mm_contig_declare_cma(&a->mm, range_start(a), RANGE_BLOCKS * BLOCK_FRAMES), 0);
	/* movable pages use the range when all other memory is full */
	while (holder_take(&holder, 5, 0))
		taken++;
	EXPECT(holder_pages_in(&holder, range_start(a),
			       range_start(a) + RANGE_BLOCKS * BLOCK_FRAMES) > 0);
	/* there is no room elsewhere */
	EXPECT_EQ(take(a), -ENOMEM);
	EXPECT(holder_intact(&holder));
	EXPECT(arena_accounted(a));
	for (u64 slot = 0; slot < taken / 2; slot++)
		holder_give(&holder, slot * 2);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(take(a), 0);
	EXPECT(holder_intact(&holder));
	/* The block keeps its type while it is used. */
	EXPECT_EQ(block_type(block_of(&a->mm, range_start(a))), MIGRATE_CMA);
	EXPECT(arena_accounted(a));
	mm_contig_free_range(&a->mm, range_start(a), RANGE_BLOCKS * BLOCK_FRAMES);
}

/* ---- blocks of every state ---- */

/*
 * Ranges and bad frames among blocks of every state: bare, full, and huge in mapped sections, where
 * struct pages have to be restored first. Each step fails once, and then the range must be as it
 * was.
 */

enum { BARE_AT = 32 };

static u32 start_block; /* block of the range */

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
	chain_take(&chain, &a->mm, RANGE_BLOCKS, BLOCK_ORDER, 0, 0);
	chain_give(&chain, &a->mm);
	block_list_publish_free(&a->mm, &bare);
	pcp_drain_all(&a->mm);
	start_block = arena_block(a) + SECTION_BLOCKS;
	while (start_block < arena_block(a) + 2 * SECTION_BLOCKS &&
	       (block_look_at(&a->mm, start_block).state != BLOCK_HUGE ||
		!(block_look_at(&a->mm, start_block).flags & BLOCK_MAPPED)))
		start_block++;
	if (start_block + RANGE_BLOCKS > arena_block(a) + 2 * SECTION_BLOCKS)
		test_fail(__FILE__, __LINE__, "no free huge page in the mapped section");
	return a;
}

static struct arena *borrow_with_bare(void)
{
	struct arena *a = arena_borrow(MIB(256));

	if (!a)
		return NULL;
	start_block = arena_block(a) + BARE_AT;
	EXPECT_EQ(block_look_at(&a->mm, start_block).state, BLOCK_BARE);
	return a;
}

static struct arena *borrow_scattered(void)
{
	struct arena *a = arena_borrow(MIB(32));

	if (!a)
		return NULL;
	start_block = arena_block(a) + RANGE_AT;
	EXPECT(scatter(a, 1200));
	return a;
}

/*
 * Take the range once with one failure. If the call failed, it is repeated. Returns true if the
 * failure was met.
 */
static bool take_with_fault(struct arena *a, u32 fault)
{
	const u64 in_use = arena_usage(a).in_use, frames = RANGE_BLOCKS * BLOCK_FRAMES;
	const pfn_t first = block_pfn(start_block);
	bool met;
	int err;

	fail_arm(&a->mm.fail, FAIL_ANY, fault, FAIL_ONCE);
	err = mm_contig_alloc_range(&a->mm, first, frames);
	met = fail_disarm(&a->mm.fail);
	EXPECT(err == 0 || (met && (err == -EBUSY || err == -ENOMEM)));
	EXPECT_EQ(arena_usage(a).in_use, in_use + (err ? 0 : frames));
	EXPECT(nothing_isolated(a));
	EXPECT(holder_intact(&holder));
	EXPECT(arena_accounted(a));
	if (err)
		EXPECT_EQ(mm_contig_alloc_range(&a->mm, first, frames), 0);
	EXPECT_EQ(arena_usage(a).in_use, in_use + frames);
	EXPECT(holder_intact(&holder));
	mm_contig_free_range(&a->mm, first, frames);
	EXPECT_EQ(arena_usage(a).in_use, in_use);
	EXPECT(arena_accounted(a));
	return met;
}

/*
 * Repeat until a run meets no failure. Each run has an arena of its own, because pages that an
 * earlier run moved are no longer in the way. Returns the number of places, which have all failed
 * unless sweep_next() left some out.
 */
static u32 sweep(struct arena *(*borrow)(void))
{
	bool met = true;
	u32 last = 0;

	for (u32 fault = 1; met && fault < FAULTS_MAX && !test_failed();
	     fault = sweep_next(fault)) {
		struct arena *a;

		holder = (struct holder){0}; /* unless borrow() fills it */
		a = borrow();
		if (!a)
			return ~0U; /* the skip message says why */
		met = take_with_fault(a, fault);
		last = met ? fault : last;
		arena_return(a);
	}
	EXPECT(!met);
	print("  # taking a range: places up to number %u failed, one at a time\n", last);
	return sweep_next(last) - 1;
}

TEST(mm_contig, every_failure_point_leaves_no_trace)
{
	/* Each step of isolating can fail, allocating a destination can, and taking can. */
	EXPECT(sweep(borrow_scattered) >= RANGE_BLOCKS + 3);
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
	const pfn_t pfn = block_pfn(start_block) + 77;
	const u64 free = arena_available(a) + arena_usage(a).meta + arena_usage(a).gated;

	EXPECT_EQ(mm_mark_bad(&a->mm, pfn), 0);
	EXPECT_EQ(block_look_at(&a->mm, start_block).state, BLOCK_FULL);
	EXPECT_EQ(arena_usage(a).bad, 1);
	EXPECT(mm_page_peek(&a->mm, pfn, &copy) && copy.flags & PAGE_BAD);
	EXPECT_EQ(arena_available(a) + arena_usage(a).meta + arena_usage(a).gated, free - 1);
}

/* Without frames to restore its struct pages, the range stays huge and free. */
TEST_ARENA(mm_contig, huge_memory_that_cannot_be_restored_stays_huge, borrow_with_huge_mapped())
{
	fail_arm(&a->mm.fail, FAIL_META, 1, FAIL_AGAIN);
	EXPECT_EQ(mm_contig_alloc_range(&a->mm, block_pfn(start_block), BLOCK_FRAMES), -ENOMEM);
	fail_disarm(&a->mm.fail);
	EXPECT_EQ(block_look_at(&a->mm, start_block).state, BLOCK_HUGE);
	EXPECT(nothing_isolated(a));
	EXPECT(arena_accounted(a));
	EXPECT_EQ(mm_contig_alloc_range(&a->mm, block_pfn(start_block), BLOCK_FRAMES), 0);
	mm_contig_free_range(&a->mm, block_pfn(start_block), BLOCK_FRAMES);
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
