/*
 * Free memory that is shown to the host: all of it, once, in runs as long as they can be, and never
 * while somebody has it. The cases are their own host.
 */
#include "mm/zone/report.h"

#include "tests/kernel/mm_test.h"

#define ALL ((u64)-1)

static struct arena *borrow(void)
{
	struct arena *a = arena_borrow(MIB(32), .phantom = GIB(2));

	if (a)
		arena_open_all(a);
	return a;
}

static u64 frames_out(const struct report *report)
{
	u64 frames = 0;

	for (u32 i = 0; i < report->count; i++)
		frames += order_pages(report->run[i].order);
	return frames;
}

/* Show everything, in as many turns as that takes. Returns how many frames were shown. */
static u64 show_from(struct report *report)
{
	u64 frames = 0;

	while (report_take(report, ALL) > 0 || report_has_more(report)) {
		frames += frames_out(report);
		report_give(report, REPORT_TAKEN);
	}
	return frames;
}

static u64 show_all(struct arena *a)
{
	struct report report = {.mm = &a->mm};

	return show_from(&report);
}

TEST_ARENA(mm_report, all_that_is_free_is_shown_once, borrow())
{
	const u64 free = arena_showable(a);

	EXPECT(free > GIB(1) >> PAGE_SHIFT);
	EXPECT_EQ(show_all(a), free);
	EXPECT_EQ(show_all(a), 0);
	EXPECT_EQ(arena_showable(a), free);
}

/* REPORT_GIBS without free memory do not end a pass, and a run that is found begins a new one. */
TEST_ARENA(mm_report, what_is_free_behind_many_gibs_without_is_shown,
	   arena_borrow(MIB(4), .phantom = GIB(REPORT_GIBS + 2)))
{
	struct report report = {.mm = &a->mm, .looked = a->mm.gibs};
	const u64 free = arena_showable(a);

	EXPECT(free > 0);
	EXPECT(!report_has_more(&report));
	EXPECT(report_take(&report, ALL) > 0);
	EXPECT(report_has_more(&report));
	report_give(&report, REPORT_REFUSED);
	report.gib = 1;
	EXPECT_EQ(show_from(&report), free);
}

TEST_ARENA(mm_report, what_is_shown_belongs_to_nobody, borrow())
{
	struct report report = {.mm = &a->mm};

	report_take(&report, ALL);
	for (u32 i = 0; i < report.count; i++)
		for (u32 block = report.run[i].index;
		     block < report.run[i].index + order_blocks(report.run[i].order); block++)
			EXPECT_EQ(buddy_find_run(&a->mm, block), BLOCK_NONE);
	EXPECT_EQ(arena_usage(a).transit, frames_out(&report));
	EXPECT(arena_accounted(a));
	report_give(&report, REPORT_TAKEN);
}

TEST_ARENA(mm_report, memory_that_was_in_use_is_shown_again_and_nothing_else, borrow())
{
	enum { PAGES = 3 };
	const struct hvo_mode *on = hvo_mode_find("on");
	u64 shown;

	show_all(a);
	EXPECT_EQ(pool_grow(&a->pool, on, PAGES), PAGES);
	EXPECT_EQ(show_all(a), 0);
	EXPECT_EQ(pool_shrink(&a->pool, on, PAGES), PAGES);
	EXPECT_EQ(show_all(a), PAGES * BLOCK_FRAMES); /* as huge pages */
	EXPECT_EQ(show_all(a), 0);

	EXPECT_EQ(pool_grow(&a->pool, on, PAGES), PAGES);
	EXPECT_EQ(pool_shrink(&a->pool, on, PAGES), PAGES);
	for (unsigned z = 0; z < a->mm.zones; z++)
		hvo_bare_free_huge(&a->mm.zone[z], PAGES);
	/* as parts of longer runs; a block that held the heads may have come back, too */
	shown = show_all(a);
	EXPECT(shown == PAGES * BLOCK_FRAMES || shown == (PAGES + 1) * BLOCK_FRAMES);
	EXPECT_EQ(show_all(a), 0);
}

TEST_ARENA(mm_report, pages_that_are_given_out_lose_the_note, borrow())
{
	enum { PAGES = 2 };
	const struct hvo_mode *on = hvo_mode_find("on");
	struct page *page, *giga;

	EXPECT_EQ(pool_grow(&a->pool, on, PAGES), PAGES);
	EXPECT_EQ(pool_shrink(&a->pool, on, PAGES), PAGES);
	show_all(a);
	page = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_UNMOVABLE, 0, 0);
	giga = mm_page_alloc(&a->mm, GIGA_ORDER, USE_UNMOVABLE, 0, NODE_NONE);
	EXPECT(page && giga);
	EXPECT(arena_accounted(a)); /* a page in use that has the note is an error */
	if (page)
		mm_page_free(&a->mm, page);
	if (giga)
		mm_page_free(&a->mm, giga);
	EXPECT(show_all(a) >= order_pages(GIGA_ORDER));
}

TEST_ARENA(mm_report, isolated_memory_is_not_shown, borrow())
{
	struct isolation token;
	const u64 free = arena_showable(a);

	EXPECT_EQ(isolate_range(arena_phantom_zone(a), arena_phantom_block(a), 1, &token), 0);
	EXPECT_EQ(show_all(a), free - BLOCK_FRAMES);
	isolate_undo(arena_phantom_zone(a), &token);
	EXPECT_EQ(show_all(a), BLOCK_FRAMES);
}

TEST(mm_report, one_cpu_at_a_time_shows_memory_and_none_in_a_pause)
{
	if (!report_claim())
		SKIP("balloon=on: an idle CPU has the claim");
	EXPECT(!report_claim());
	report_release();
	report_pause();
	EXPECT(!report_claim());
	report_resume();
	EXPECT(report_claim());
	report_release();
}

static void pause_and_claim(void *claims)
{
	report_pause();
	report_resume();
	if (report_claim()) {
		EXPECT_EQ(atomic_fetch_add((u32 *)claims, 1), 0);
		atomic_fetch_sub((u32 *)claims, 1);
		report_release();
	}
}

TEST(mm_report, pauses_of_several_cpus_all_end)
{
	u32 claims = 0;

	cpus_run_together(pause_and_claim, &claims);
	CPUS_AWAIT(
		report_claim()); /* with balloon=on, an idle CPU may have the claim for a while */
	report_release();
}
