/*
 * Bad frames end up out of use and counted, whatever state they are in when they are marked: free
 * in any form, or in use in any form.
 */
#include "tests/kernel/mm_test.h"

/* ---- the option ---- */

struct ranges {
	phys_t start[4], end[4];
	unsigned count;
};

static void note(phys_t start, phys_t end, void *ctx)
{
	struct ranges *r = ctx;

	if (r->count < ARRAY_LEN(r->start)) {
		r->start[r->count] = start;
		r->end[r->count] = end;
	}
	r->count++;
}

TEST(mm_bad, badram_names_frames_and_ranges)
{
	struct ranges r = {.count = 0};

	EXPECT_EQ(bad_ram_parse("0x12345678,3G+2M,1M+1", note, &r), 0);
	REQUIRE(r.count == 3);
	EXPECT(r.start[0] == 0x12345000 && r.end[0] == 0x12346000);
	EXPECT(r.start[1] == GIB(3) && r.end[1] == GIB(3) + MIB(2));
	EXPECT(r.start[2] == MIB(1) && r.end[2] == MIB(1) + KIB(4));
	EXPECT_EQ(bad_ram_parse("", note, &r), 0);
	EXPECT_EQ(r.count, 3);
}

TEST(mm_bad, nonsense_in_badram_is_refused)
{
	static const char *const bad[] = {"x",     "1M+", "1M+0",   "1M-2M",
					  "1M;2M", ",",   "1M,,2M", "+4K"};
	struct ranges r = {.count = 0};

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		EXPECT_EQ(bad_ram_parse(bad[i], note, &r), -EINVAL);
	EXPECT_EQ(bad_ram_parse("0xffffffffffffffff", note, &r), -ERANGE);
	EXPECT_EQ(bad_ram_parse("1M+0xffffffffffffffff", note, &r), -ERANGE);
	EXPECT_EQ(bad_ram_parse("99999999999999999999", note, &r), -ERANGE);
	EXPECT_EQ(r.count, 1); /* the range of "1M,,2M" before the error */
}

/* ---- never given out again ---- */

static struct page *alloc(struct arena *a, unsigned order, node_t node)
{
	return mm_page_alloc(&a->mm, order, USE_MOVABLE, PAGE_NODE, node);
}

/*
 * Take all of a node's memory, large pieces first, expect that the frame is not in it, and give it
 * back.
 */
static void expect_never_given_out(struct arena *a, node_t node, pfn_t pfn)
{
	static const u8 orders[] = {8, 5, 2, 0};
	struct page *chain = NULL, *page;
	bool seen = false;

	for (unsigned i = 0; i < ARRAY_LEN(orders); i++) {
		while ((page = alloc(a, orders[i], node))) {
			seen |= pfn - page_to_pfn(page) < order_pages(orders[i]);
			page_chain_push(&chain, page);
		}
	}
	EXPECT(!seen);
	chain_give(&chain, &a->mm);
}

/* The frames that wait for their holder after another look at all of them. */
static unsigned still_pending(struct arena *a)
{
	unsigned count = 0;

	bad_frames_withdraw(&a->mm);
	for (unsigned i = 0; i < BAD_FRAMES_MAX; i++)
		count += a->mm.bad.word[i] != 0;
	return count;
}

static void expect_out_of_use(struct arena *a, node_t node, pfn_t pfn, u64 bad)
{
	struct page copy;

	EXPECT_EQ(still_pending(a), 0);
	EXPECT_EQ(arena_usage(a).bad, bad);
	EXPECT(mm_page_peek(&a->mm, pfn, &copy) && copy.flags & PAGE_BAD);
	EXPECT(!block_word_is_isolated(block_look(block_of(&a->mm, pfn))));
	EXPECT(arena_accounted(a));
	expect_never_given_out(a, node, pfn);
	EXPECT_EQ(mm_mark_bad(&a->mm, pfn), 0); /* the frame is marked already */
	EXPECT_EQ(arena_usage(a).bad, bad);
	EXPECT(arena_accounted(a));
}

TEST_ARENA(mm_bad, frames_named_at_boot_are_nobodys,
	   arena_borrow(MIB(16), .bad = {{MIB(5) + KIB(12), KIB(8)}, {MIB(9), KIB(4)}}))
{
	const pfn_t pfn = (a->start + MIB(5) + KIB(12)) >> PAGE_SHIFT;

	EXPECT_EQ(arena_usage(a).bad, 3);
	EXPECT_EQ(arena_usage(a).reserved, 0);
	EXPECT(arena_accounted(a));
	expect_out_of_use(a, 0, pfn, 3);
	expect_never_given_out(a, 0, pfn + 1);
	expect_never_given_out(a, 0, (a->start + MIB(9)) >> PAGE_SHIFT);
}

TEST_ARENA(mm_bad, a_frame_never_opened_is_taken_out, arena_usual())
{
	const pfn_t pfn = (a->phantom >> PAGE_SHIFT) + 123456;

	EXPECT_EQ(mm_mark_bad(&a->mm, pfn), 0);
	/* the section of this one cannot be opened at once */
	fail_arm(&a->mm.fail, FAIL_OPEN, 1, FAIL_AGAIN);
	EXPECT_EQ(mm_mark_bad(&a->mm, pfn + SECTION_FRAMES), -EBUSY);
	fail_disarm(&a->mm.fail);
	expect_out_of_use(a, 1, pfn + SECTION_FRAMES, 2);
	expect_out_of_use(a, 1, pfn, 2);
}

/* Frames of pages of each kind: small, compound and huge. */
static const struct {
	unsigned order;
	u64 offset;
} of_page[] = {{0, 0}, {5, 17}, {BLOCK_ORDER, 511}, {GIGA_ORDER, 200000}};

TEST(mm_bad, a_free_page_is_split_around_it)
{
	for (unsigned i = 0; i < ARRAY_LEN(of_page); i++) {
		struct arena *a = arena_usual();
		struct page *page;
		pfn_t pfn;

		if (!a)
			return;
		page = alloc(a, of_page[i].order, 1);
		REQUIRE(page);
		pfn = page_to_pfn(page) + of_page[i].offset;
		mm_page_free(&a->mm, page); /* a huge block stays huge */
		EXPECT_EQ(mm_mark_bad(&a->mm, pfn), 0);
		expect_out_of_use(a, 1, pfn, 1);
		arena_return(a);
		if (!row_passed("order %u", of_page[i].order))
			return;
	}
}

/* ---- in use ---- */

static void check_one_in_use(unsigned order, u64 offset, bool exhaust)
{
	struct arena *a = arena_usual();
	struct page *page, *other;
	pfn_t pfn;

	if (!a)
		return;
	page = alloc(a, order, 1);
	other = mm_page_alloc(&a->mm, 0, USE_MOVABLE, PAGE_NODE, 0);
	REQUIRE(page && other);
	pfn = page_to_pfn(page) + offset;
	EXPECT_EQ(mm_mark_bad(&a->mm, pfn), -EBUSY);
	EXPECT_EQ(mm_mark_bad(&a->mm, pfn), -EBUSY);
	EXPECT_EQ(arena_usage(a).bad, 0);
	EXPECT_EQ(page_order(page), order); /* the holder notices nothing */
	EXPECT_EQ(page->refcount, 1);
	EXPECT_EQ(still_pending(a), 1);
	EXPECT(arena_accounted(a));
	mm_page_free(&a->mm, page);
	if (exhaust) {
		/* the frame must not be given out once it is free */
		expect_never_given_out(a, 1, pfn);
		/* Metadata memory gets frames for struct pages again */
		hvo_huge_free_full(arena_phantom_zone(a), 64);
		meta_flush_gated(&a->mm.node[0]);
	} else {
		mm_page_free(&a->mm, other); /* this first free after it withdraws the frame */
		EXPECT_EQ(arena_usage(a).bad, 1);
	}
	expect_out_of_use(a, 1, pfn, 1);
	EXPECT_EQ(a->mm.watch & WATCH_BAD, 0);
	arena_return(a);
}

TEST(mm_bad, a_page_in_use_is_taken_out_when_it_is_freed)
{
	for (unsigned i = 0; i < ARRAY_LEN(of_page); i++) {
		check_one_in_use(of_page[i].order, of_page[i].offset, false);
		check_one_in_use(of_page[i].order, of_page[i].offset, true);
		if (!row_passed("order %u", of_page[i].order))
			return;
	}
}

static pfn_t pool_pfn; /* the bad frame of a case with a pool */

/* A pool of 4 pages; the first has the frame. */
static struct arena *borrow_with_pool(void)
{
	struct arena *a = arena_usual();

	if (!a)
		return NULL;
	EXPECT_EQ(pool_grow_on(&a->pool, hvo_on(), 1, 4), 4);
	pool_pfn = block_pfn(a->pool.node[1].free.head) + 77;
	return a;
}

static void expect_pool(struct arena *a, u64 pages)
{
	EXPECT_EQ(arena_usage(a).bad, 1);
	pool_expect_counts(&a->pool, pages, 0, 0);
	expect_out_of_use(a, 1, pool_pfn, 1);
	EXPECT_EQ(a->mm.watch & WATCH_BAD, 0);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), 4), pages);
}

TEST_ARENA(mm_bad, another_page_takes_the_place_of_a_free_one_in_a_pool, borrow_with_pool())
{
	EXPECT_EQ(mm_mark_bad(&a->mm, pool_pfn), 0);
	expect_pool(a, 4);
}

TEST_ARENA(mm_bad, without_another_page_the_pool_becomes_smaller, borrow_with_pool())
{
	fail_arm(&a->mm.fail, FAIL_MOVE, 1, FAIL_AGAIN);
	EXPECT_EQ(mm_mark_bad(&a->mm, pool_pfn), 0);
	fail_disarm(&a->mm.fail);
	expect_pool(a, 3);
}

/* The frame stays, and the attempt ends: the page that comes back is not tried at once again. */
TEST_ARENA(mm_bad, a_page_that_cannot_be_restored_keeps_its_bad_frame, arena_borrow(MIB(256)))
{
	const struct hvo_mode *batched = hvo_mode_find("batched");
	struct famine famine;

	test_option("hvo", "batched");
	EXPECT_EQ(pool_grow(&a->pool, batched, 4), 4);
	pool_pfn = block_pfn(a->pool.node[0].free.head) + 77;
	famine_begin(&famine, a, META_MEMMAP, 0);
	fail_arm(&a->mm.fail, FAIL_MOVE, 1, FAIL_AGAIN);
	EXPECT_EQ(mm_mark_bad(&a->mm, pool_pfn), -EBUSY);
	fail_disarm(&a->mm.fail);
	pool_expect_counts(&a->pool, 4, 0, 1);
	famine_end(&famine);
	EXPECT_EQ(pool_shrink(&a->pool, batched, 4), 4);
	EXPECT_EQ(arena_usage(a).bad, 1);
}

TEST_ARENA(mm_bad, a_pool_gives_no_page_with_a_reported_frame, borrow_with_pool())
{
	struct page *page[4];
	mm_report_bad(&a->mm, pool_pfn);
	for (unsigned i = 0; i < ARRAY_LEN(page); i++) {
		page[i] = pool_page_take(&a->pool, 1, POOL_ANY);
		REQUIRE(page[i]);
		EXPECT(pool_pfn - page_to_pfn(page[i]) >= BLOCK_FRAMES);
	}
	for (unsigned i = 0; i < ARRAY_LEN(page); i++)
		pool_page_give(&a->pool, page[i]);
	expect_pool(a, 4);
}

/* It stays as long as its page is promised, and is out of use once the page is shrunk away. */
TEST_ARENA(mm_bad, a_promise_is_kept_before_a_bad_frame_leaves_the_pool, borrow_with_pool())
{
	EXPECT_EQ(pool_reserve(&a->pool, 4), 0);
	fail_arm(&a->mm.fail, FAIL_MOVE, 1, FAIL_AGAIN);
	EXPECT_EQ(mm_mark_bad(&a->mm, pool_pfn), -EBUSY);
	EXPECT_EQ(a->pool.free, 4);
	pool_unreserve(&a->pool, 4);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), 4), 4);
	fail_disarm(&a->mm.fail);
	expect_pool(a, 0);
}

/* Take a page of the pool, one of whose frames turns out to be bad while it is in use. */
static struct page *take_and_mark_bad(struct arena *a)
{
	struct page *page = pool_page_take(&a->pool, 1, POOL_ANY);

	if (!page)
		return NULL;
	pool_pfn = page_to_pfn(page) + 99;
	EXPECT_EQ(mm_mark_bad(&a->mm, pool_pfn), -EBUSY);
	return page;
}

TEST_ARENA(mm_bad, a_page_given_back_to_a_pool_leaves_it_at_once, borrow_with_pool())
{
	struct page *page = take_and_mark_bad(a);

	REQUIRE(page);
	pool_page_give(&a->pool, page);
	expect_pool(a, 4);
}

/* The page is given back while another CPU withdraws, which has looked at its frame already. */
TEST_ARENA(mm_bad, a_withdrawal_that_came_too_early_is_made_again, borrow_with_pool())
{
	struct page *page = take_and_mark_bad(a);

	REQUIRE(page);
	a->mm.bad.withdrawing = 2;
	pool_page_give(&a->pool, page);
	EXPECT_EQ(mm_mark_bad(&a->mm, block_pfn(arena_block(a) + 2) + 5), -EAGAIN);
	EXPECT_EQ(still_pending(a), 1);
	EXPECT_EQ(arena_usage(a).bad, 0);
	a->mm.bad.withdrawing = 0;
	/* the frame is known; what follows is the other CPU's end */
	EXPECT_EQ(mm_mark_bad(&a->mm, pool_pfn), -EBUSY);
	expect_pool(a, 4);
}

/*
 * Pages that go back to a pool drive the withdrawal of other frames, as those to the buddy do: at
 * its pace, because an attempt asks all CPUs for what they hold.
 */
TEST_ARENA(mm_bad, a_frame_is_withdrawn_while_only_pool_pages_are_given_back, borrow_with_pool())
{
	struct page *page = alloc(a, 0, 0);
	struct page *huge = pool_page_take(&a->pool, 1, POOL_ANY);

	REQUIRE(page && huge);
	EXPECT_EQ(mm_mark_bad(&a->mm, page_to_pfn(page)), -EBUSY);
	a->mm.bad.withdrawing = 2; /* another CPU withdraws, and has looked at the frame already */
	mm_page_free(&a->mm, page);
	a->mm.bad.withdrawing = 0;
	EXPECT_EQ(arena_usage(a).bad, 0);
	a->mm.bad.wait = 1; /* the last attempt was in vain */
	pool_page_give(&a->pool, huge);
	EXPECT_EQ(arena_usage(a).bad, 0);
	huge = pool_page_take(&a->pool, 1, POOL_ANY);
	REQUIRE(huge);
	pool_page_give(&a->pool, huge);
	EXPECT_EQ(arena_usage(a).bad, 1);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_mode_selected(), a->pool.pages), 4);
}

/*
 * Metadata memory goes on using its block. Once metadata memory has released the block, nobody else
 * gets the bad frame.
 */
TEST_ARENA(mm_bad, a_block_that_meta_lets_go_with_it_is_given_to_nobody, arena_borrow(MIB(32)))
{
	u32 index;
	struct node *node = &a->mm.node[0];

	EXPECT_EQ(meta_reserve(node, META_TAILS, 2 * BLOCK_FRAMES), 0);
	REQUIRE(node->meta.list[META_TAILS]);
	index = node->meta.list[META_TAILS]->block;
	EXPECT_EQ(mm_mark_bad(&a->mm, block_pfn(index) + 7), -EBUSY);
	meta_unreserve(node, META_TAILS, 2 * BLOCK_FRAMES);
	meta_end_batch(node);
	REQUIRE(block_look_at(&a->mm, index).state != BLOCK_META);
	EXPECT(block_word_is_isolated(block_look(block_at(&a->mm, index))));
	EXPECT(arena_accounted(a));
	expect_never_given_out(a, 0, block_pfn(index) + 7);
	expect_out_of_use(a, 0, block_pfn(index) + 7, 1);
}

/*
 * Two frames wait, of one block with two holders or of two huge pages. Each stays isolated until it
 * is out of use, also while the other one is withdrawn.
 */
TEST(mm_bad, each_of_two_pending_frames_keeps_its_isolation)
{
	for (unsigned order = 0; order <= BLOCK_ORDER; order += BLOCK_ORDER) {
		struct arena *a = arena_usual();
		struct page *first, *second;
		pfn_t one, two;

		if (!a)
			return;
		first = alloc(a, order, 1);
		second = alloc(a, order, 1);
		REQUIRE(first && second);
		one = page_to_pfn(first) + order / 3;
		two = page_to_pfn(second) + order / 2;
		EXPECT_EQ(one >> BLOCK_ORDER == two >> BLOCK_ORDER, order == 0);
		EXPECT_EQ(mm_mark_bad(&a->mm, one), -EBUSY);
		EXPECT_EQ(mm_mark_bad(&a->mm, two), -EBUSY);
		EXPECT(arena_accounted(a));
		mm_page_free(&a->mm, first);
		EXPECT_EQ(still_pending(a), 1);
		EXPECT(block_word_is_isolated(block_look(block_of(&a->mm, two))));
		EXPECT(arena_accounted(a));
		mm_page_free(&a->mm, second);
		expect_out_of_use(a, 1, one, 2);
		expect_out_of_use(a, 1, two, 2);
		arena_return(a);
		if (!row_passed("order %u", order))
			return;
	}
}

/*
 * A section that opens again would lose an isolation, so a frame whose section is closing is
 * pending without one.
 */
TEST_ARENA(mm_bad, a_frame_whose_section_closes_is_not_isolated, arena_usual())
{
	struct zone *zone;
	u32 index;

	arena_open_all(a);
	zone = arena_phantom_zone(a);
	index = block_take_one(zone, FREE_BARE, BLOCK_UNOPENED);
	REQUIRE(index != BLOCK_NONE);
	EXPECT_EQ(mm_mark_bad(&a->mm, block_pfn(index) + 9), -EBUSY);
	EXPECT(!block_word_is_isolated(block_look(block_at(&a->mm, index))));
	block_publish_free(zone, index, BLOCK_ORDER);
	expect_out_of_use(a, 1, block_pfn(index) + 9, 1);
}

/* ---- frames that cannot be taken out ---- */

TEST_ARENA(mm_bad, what_is_no_free_ram_is_refused_or_waited_for,
	   arena_borrow(MIB(16), .hole = {{MIB(9) + KIB(12), KIB(36)}},
			.firmware = {{MIB(11), KIB(8)}}))
{
	const pfn_t first = a->start >> PAGE_SHIFT;

	EXPECT_EQ(mm_mark_bad(&a->mm, first + MIB(9) / PAGE_SIZE + 3), -EINVAL); /* a hole */
	EXPECT_EQ(mm_mark_bad(&a->mm, first + MIB(11) / PAGE_SIZE), -EINVAL); /* a firmware range */
	/* beyond the end of RAM */
	EXPECT_EQ(mm_mark_bad(&a->mm, first + MIB(16) / PAGE_SIZE), -EINVAL);
	EXPECT_EQ(mm_mark_bad(&a->mm, ~0ULL >> PAGE_SHIFT), -EINVAL);
	EXPECT_EQ(arena_usage(a).bad, 0);
	EXPECT_EQ(mm_mark_bad(&a->mm, first + 5), -EBUSY); /* struct pages lie there */
	/* This frame beside the firmware range is free. */
	EXPECT_EQ(mm_mark_bad(&a->mm, first + MIB(11) / PAGE_SIZE + 2), 0);
	EXPECT_EQ(arena_usage(a).bad, 1);
}

/* ---- reports from contexts that cannot act on them ---- */

/* There is no place for the frame. It is refused, a report of it is lost, and nothing else is. */
TEST_ARENA(mm_bad, a_report_without_room_is_lost, arena_borrow(MIB(16)))
{
	struct page *page = alloc(a, 8, 0);

	REQUIRE(page);
	for (unsigned i = 0; i < BAD_FRAMES_MAX; i++)
		EXPECT_EQ(mm_mark_bad(&a->mm, page_to_pfn(page) + i), -EBUSY);
	EXPECT_EQ(mm_mark_bad(&a->mm, page_to_pfn(page) + BAD_FRAMES_MAX), -ENOMEM);
	mm_report_bad(&a->mm, page_to_pfn(page) + BAD_FRAMES_MAX);
	EXPECT_EQ(a->mm.bad.lost, 1);
	bad_frames_take_reported(&a->mm);
	EXPECT_EQ(a->mm.bad.lost, 0);
	EXPECT_EQ(a->mm.watch & WATCH_REPORTED, 0);
	mm_page_free(&a->mm, page);
	EXPECT_EQ(still_pending(a), 0);
	EXPECT_EQ(arena_usage(a).bad, BAD_FRAMES_MAX);
}

TEST_ARENA(mm_bad, a_reported_frame_is_out_before_it_can_be_given_out, arena_borrow(MIB(16)))
{
	const pfn_t free = (a->start + MIB(9) + KIB(444)) >> PAGE_SHIFT;
	struct page *page;
	pfn_t used;

	for (unsigned i = 0; i < 3; i++)
		mm_report_bad(&a->mm, free); /* the second and third report the same error */
	EXPECT_EQ(arena_usage(a).bad, 0);
	expect_never_given_out(a, 0, free);
	EXPECT_EQ(a->mm.watch & WATCH_REPORTED, 0);
	EXPECT_EQ(arena_usage(a).bad, 1);
	expect_out_of_use(a, 0, free, 1);

	page = alloc(a, 0, 0);
	REQUIRE(page);
	used = page_to_pfn(page);
	mm_report_bad(&a->mm, used);
	mm_page_free(&a->mm, page);
	expect_out_of_use(a, 0, used, 2);
	mm_report_bad(&a->mm, PHYS_LIMIT >> PAGE_SHIFT); /* an address where there is no memory */
	bad_frames_take_reported(&a->mm);
	EXPECT_EQ(a->mm.watch & WATCH_REPORTED, 0);
}

/* ---- several CPUs ---- */

static struct {
	struct arena *a;
	struct page *page[CPUS_TOGETHER];
	u32 parts;
	pfn_t marked;
} several;

static bool borrow_for_several(unsigned order)
{
	several.parts = 0;
	several.a = arena_borrow(MIB(16));
	for (unsigned i = 0; several.a && i < CPUS_TOGETHER; i++)
		EXPECT((several.page[i] = alloc(several.a, order, 0)));
	return several.a && !test_failed();
}

/* One CPU marks a frame. The others report one that is no memory. */
static void mark_or_report(void *unused)
{
	const u32 part = atomic_fetch_add(&several.parts, 1);

	if (part == 0)
		CPUS_AWAIT(mm_mark_bad(&several.a->mm, several.marked) != -EAGAIN);
	else if (part < CPUS_TOGETHER)
		mm_report_bad(&several.a->mm, part);
}

/* mm->watch tells the CPUs that free pages that there is something to do. */
TEST(mm_bad, no_cpu_that_marks_or_reports_hides_what_others_do)
{
	enum { TURNS = 4 };
	struct mm *mm;

	if (!borrow_for_several(0))
		return;
	mm = &several.a->mm;
	several.marked = page_to_pfn(several.page[0]) + BLOCK_FRAMES;
	EXPECT_EQ(mm_mark_bad(mm, several.marked), 0);
	for (unsigned turn = 0; turn < TURNS && !test_failed(); turn++) {
		const bool in_use = turn == TURNS - 1;
		u64 noted = 0;

		several.parts = 0;
		if (in_use)
			several.marked = page_to_pfn(several.page[0]);
		cpus_run_together(mark_or_report, NULL);
		for (unsigned i = 0; i < BAD_FRAMES_MAX; i++)
			noted += mm->bad.word[i] != 0;
		EXPECT_EQ(noted, MIN(several.parts, (u32)CPUS_TOGETHER) - !in_use);
		EXPECT_EQ((mm->watch & WATCH_REPORTED) != 0, noted > in_use);
		EXPECT(!in_use || (mm->watch & WATCH_BAD));
		bad_frames_take_reported(mm);
	}
}

enum { FRAMES_EACH = 4 };

static void report_and_take(void *unused)
{
	const u32 part = atomic_fetch_add(&several.parts, 1);

	for (unsigned i = 0; part < CPUS_TOGETHER && i < FRAMES_EACH; i++) {
		bad_frames_take_reported(&several.a->mm);
		mm_report_bad(&several.a->mm, page_to_pfn(several.page[part]) + i);
	}
}

TEST(mm_bad, frames_that_several_cpus_report_are_all_taken_out)
{
	struct arena *a;
	u64 frees = 0;

	if (!borrow_for_several(2))
		return;
	a = several.a;
	for (pfn_t pfn = 0; pfn < 4; pfn++) /* no memory: soon taken, and then there is room */
		mm_report_bad(&a->mm, pfn);
	cpus_run_together(report_and_take, NULL);
	for (unsigned i = 0; i < CPUS_TOGETHER; i++)
		mm_page_free(&a->mm, several.page[i]);
	while (frees++ < 600 && a->mm.watch & (WATCH_BAD | WATCH_REPORTED))
		mm_page_free(&a->mm, alloc(a, 0, 0));
	EXPECT_EQ(a->mm.watch & (WATCH_BAD | WATCH_REPORTED), 0);
	EXPECT_EQ(arena_usage(a).bad, FRAMES_EACH * MIN(several.parts, (u32)CPUS_TOGETHER));
}

/* ---- a page that enters or leaves a pool ---- */

static void resize_or_mark(void *arg)
{
	struct arena *a = arg;

	if (cpu_id() == 1)
		mm_mark_bad(&a->mm, pool_pfn);
	else if (cpu_id() == 0 && !pool_shrink(&a->pool, hvo_on(), 1))
		pool_grow(&a->pool, hvo_on(), 1);
}

/*
 * It is in transit, or on no list yet, while one of its frames is found to be bad. Returns how many
 * frames should be out of use in the end.
 */
static u64 resize_while_marked(struct arena *a, u64 pages)
{
	test_option("hvo", "on"); /* the page that replaces it is made so */
	EXPECT_EQ(pool_grow(&a->pool, hvo_on(), 1), 1);
	pool_pfn = block_pfn(a->pool.node[0].free.head) + 7;
	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), 1 - pages), 1 - pages);
	cpus_run_together(resize_or_mark, a);
	return cpumask_weight(&cpus_online) > 1;
}

TEST_ARENA(mm_bad, a_frame_found_while_its_page_enters_a_pool_leaves_it, arena_borrow(MIB(16)))
{
	const u64 bad = resize_while_marked(a, 0);

	EXPECT_EQ(arena_usage(a).bad, bad);
	pool_expect_counts(&a->pool, 1, 0, 0);
}

TEST_ARENA(mm_bad, a_frame_found_while_its_page_leaves_a_pool_goes_with_it, arena_borrow(MIB(16)))
{
	const u64 bad = resize_while_marked(a, 1);

	EXPECT_EQ(arena_usage(a).bad, bad);
	pool_expect_counts(&a->pool, 0, 0, 0);
}
