/*
 * Per-CPU lists: orders that share words, disabling, huge entries, bulk calls, and CPUs that do all
 * this to each other.
 */
#include "kernel/core/percpu.h"
#include "kernel/core/shootdown.h"
#include "kernel/core/wait.h"
#include "kernel/run/test.h"
#include "mm/hvo/hvo.h"
#include "mm/page/pcp.h"
#include "mm/page/pcp_drain.h"
#include "mm/zone/isolate.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/listed.h"
#include "tests/kernel/provoke.h"
#include "tests/kernel/random.h"

static struct page *alloc_order(struct arena *a, unsigned order)
{
	return alloc_on_phantom(a, order, USE_MOVABLE);
}

TEST_ARENA(mm_pcp, freed_neighbours_are_one_larger_page, arena_borrow(MIB(16), .phantom = GIB(1)))
{
	struct page *eight[8], *large;
	u64 refills;
	struct zone *zone = arena_phantom_zone(a);

	large = alloc_order(a, 3);
	REQUIRE(large);
	mm_page_free(&a->mm, large);
	for (unsigned i = 0; i < 8; i++) {
		eight[i] = alloc_order(a, 0);
		/* the lowest page of those freed last comes first */
		REQUIRE(eight[i] == large + i);
	}
	for (unsigned i = 0; i < 8; i++)
		mm_page_free(&a->mm, eight[(i * 3) % 8]);
	refills = pcp_stats(&a->mm).refills;
	EXPECT(alloc_order(a, 3) == large);
	EXPECT_EQ(page_order(large), 3);
	EXPECT(page_head(&large[7]) == large);
	EXPECT_EQ(pcp_stats(&a->mm).refills, refills);
	mm_page_free(&a->mm, large);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(zone->free_small, 0); /* the whole block went back and merged */
}

TEST_ARENA(mm_pcp, nothing_is_held_while_disabled, arena_borrow(MIB(16), .phantom = GIB(1)))
{
	struct page *small, *huge, *pages[3];
	struct zone *zone = arena_phantom_zone(a);

	small = alloc_order(a, 0);
	huge = alloc_order(a, BLOCK_ORDER);
	REQUIRE(small && huge);
	EXPECT(pcp_count(&a->mm, zone) > 0);
	pcp_disable(zone);
	pcp_disable(zone);
	EXPECT_EQ(pcp_count(&a->mm, zone), 0);
	mm_page_free(&a->mm, small);
	mm_page_free(&a->mm, huge);
	EXPECT_EQ(pcp_count(&a->mm, zone), 0);
	for (unsigned i = 0; i < ARRAY_LEN(pages); i++) {
		pages[i] = alloc_order(a, i == 2 ? BLOCK_ORDER : i);
		REQUIRE(pages[i]);
		EXPECT_EQ(pcp_count(&a->mm, zone), 0);
	}
	pcp_enable(zone);
	mm_page_free(&a->mm, pages[0]);
	EXPECT_EQ(pcp_count(&a->mm, zone), 0); /* one of the two calls is still in effect */
	pcp_enable(zone);
	mm_page_free(&a->mm, pages[1]);
	EXPECT_EQ(pcp_count(&a->mm, zone), 2);
	mm_page_free(&a->mm, pages[2]);
}

TEST_ARENA(mm_pcp, a_huge_entry_waits_for_its_round, arena_borrow(MIB(16), .phantom = GIB(1)))
{
	u64 tag;
	u32 index;
	struct zone *zone = arena_phantom_zone(a);
	struct page *huge = alloc_order(a, BLOCK_ORDER);

	REQUIRE(huge);
	index = (u32)(page_to_pfn(huge) >> BLOCK_ORDER);
	mm_page_free(&a->mm, huge);
	if (pcp_count(&a->mm, zone) != BLOCK_FRAMES) {
		arena_return(a);
		SKIP("so many CPUs share the arena that none may hold a huge page");
	}
	tag = shootdown_tag();
	block_at(&a->mm, index)->tag = tag;
	/* With PAGE_NOFLUSH the call may not wait for the round. */
	EXPECT(mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, PAGE_NODE | PAGE_NOFLUSH,
			     a->options.nodes) != huge);
	EXPECT(shootdown_done() < tag);
	huge = alloc_order(a, BLOCK_ORDER);
	/* The page went back to the zone's list and comes from there. */
	EXPECT(huge && page_to_pfn(huge) >> BLOCK_ORDER == index);
	EXPECT(shootdown_done() >= tag);
	mm_page_free(&a->mm, huge);
	tag = shootdown_tag();
	block_at(&a->mm, index)->tag = tag;
	EXPECT(alloc_order(a, BLOCK_ORDER) == huge); /* the page comes from the CPU's own list */
	EXPECT(shootdown_done() >= tag);
	mm_page_free(&a->mm, huge);
}

/*
 * A CPU that holds nothing frees a huge page. After it has read the type of the page's block,
 * another CPU isolates the block and drains. The drain passes over this CPU, because it is not
 * marked as holding anything. The type that was read is out of date then.
 */
TEST_ARENA(mm_pcp, a_huge_page_whose_block_is_isolated_meanwhile_is_not_kept,
	   arena_borrow(MIB(16), .phantom = GIB(1)))
{
	struct isolation token;
	struct block_word word;
	struct pcp *pcp;
	u32 index;
	bool kept;
	struct zone *zone = arena_phantom_zone(a);
	struct page *huge = alloc_order(a, BLOCK_ORDER);

	REQUIRE(huge);
	index = (u32)(page_to_pfn(huge) >> BLOCK_ORDER);
	pcp_drain_all(&a->mm);
	EXPECT(!pcp_of_this_cpu(&a->mm)->holding);
	word = block_look_at(&a->mm, index);
	REQUIRE(isolate_block(zone, index, &token) == 0);
	pcp_drain_all(&a->mm);
	pcp = pcp_enter(&a->mm);
	kept = pcp_free_huge(zone, pcp_mine(zone), index, word);
	pcp_leave(&a->mm, pcp);
	REQUIRE(!kept);
	EXPECT_EQ(pcp_count(&a->mm, zone), 0);
	isolate_undo(zone, &token);
	EXPECT(arena_accounted(a));
	mm_page_free(&a->mm, huge); /* the same without an isolation */
	EXPECT_EQ(pcp_count(&a->mm, zone), pcp_mine(zone)->high >= BLOCK_FRAMES ? BLOCK_FRAMES : 0);
}

/* ---- bulk calls ---- */

static struct page *bulk[8192];

TEST_ARENA(mm_pcp, a_bulk_call_returns_what_there_was, arena_borrow(MIB(16)))
{
	const u64 all = arena_available(a);
	const size_t got =
		mm_page_alloc_bulk(&a->mm, USE_MOVABLE, 0, NODE_NONE, bulk, ARRAY_LEN(bulk));

	EXPECT(got > 0 && got <= all && got < ARRAY_LEN(bulk));
	EXPECT(!mm_page_alloc(&a->mm, 0, USE_MOVABLE, 0, NODE_NONE)); /* not one page more */
	EXPECT_EQ(mm_page_alloc_bulk(&a->mm, USE_MOVABLE, 0, NODE_NONE, bulk, 0), 0);
	EXPECT(arena_accounted(a));
	mm_page_free_bulk(&a->mm, bulk, got);
}

/* ---- a CPU without memory gets the pages that another CPU holds ---- */

static void hold_all(void *arg)
{
	struct arena *a = arg;
	const size_t got =
		mm_page_alloc_bulk(&a->mm, USE_MOVABLE, 0, NODE_NONE, bulk, ARRAY_LEN(bulk));

	mm_page_free_bulk(&a->mm, bulk, got);
	if (pcp_count(&a->mm, arena_zone(a, 0)) > 0)
		return;
	/* the last page was one too many, and all were given back: fetch and hold some again */
	bulk[0] = mm_page_alloc(&a->mm, 0, USE_MOVABLE, 0, NODE_NONE);
	if (bulk[0])
		mm_page_free(&a->mm, bulk[0]);
}

TEST(mm_pcp, memory_held_by_other_cpus_is_found_before_giving_up)
{
	const cpu_t other = cpus_find_other();
	struct arena *a;
	struct page *page;

	if (other == CPU_NONE)
		SKIP("needs two CPUs");
	a = arena_borrow(MIB(16));
	if (!a)
		return;
	REQUIRE(work_start(other, hold_all, a) == 0);
	work_wait(other, 0);
	EXPECT(pcp_count(&a->mm, arena_zone(a, 0)) > 0);
	while ((page = mm_page_alloc(&a->mm, 0, USE_MOVABLE, 0, NODE_NONE)))
		;
	EXPECT_EQ(pcp_count(&a->mm, arena_zone(a, 0)), 0);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* ---- CPUs that begin to hold pages while another CPU disables lists ---- */

static struct disabling {
	struct arena *a;
	struct provoke until;
	u32 one, held, turns;
} disabling;

/*
 * After each drain the other CPUs begin to hold pages again. At that moment one of them may be
 * mistaken for a CPU that holds nothing.
 */
static void hold_or_disable(void *arg)
{
	struct disabling *d = arg;
	struct zone *zone = arena_phantom_zone(d->a);
	const bool disables = atomic_fetch_add(&d->one, 1) == 0;

	while (provoke_goes_on(&d->until)) {
		struct page *page = disables ? NULL : alloc_order(d->a, 0);

		if (page)
			mm_page_free(&d->a->mm, page);
		if (!disables)
			continue;
		pcp_disable(zone);
		for (unsigned i = 0; i < 20; i++)
			if (pcp_count(&d->a->mm, zone) != 0)
				atomic_fetch_add(&d->held, 1);
		pcp_enable(zone);
		d->turns++;
	}
}

TEST(mm_pcp, no_cpu_begins_to_hold_what_is_disabled)
{
	disabling = (struct disabling){.a = arena_borrow(MIB(16), .phantom = GIB(1)),
				       .until = provoke_begin()};
	if (!disabling.a)
		return;
	cpus_run_together(hold_or_disable, &disabling);
	EXPECT_EQ(disabling.held, 0);
	cpus_note_met(disabling.turns, "turns");
	EXPECT(arena_accounted(disabling.a));
	arena_return(disabling.a);
}

/* ---- one CPU that begins to hold pages, and one that disables lists, once ---- */

enum { MEETINGS = 4 };

static struct meeting {
	struct arena *a;
	cpu_t holds, disables;
	u32 freed;
} meeting;

/*
 * The other CPU begins to hold pages before the lists are disabled, and is then asked to give them
 * back, or later, and then finds them disabled. In between it must not be overlooked.
 */
static void hold_or_disable_once(void *arg)
{
	struct meeting *m = arg;
	struct zone *zone = arena_phantom_zone(m->a);

	if (cpu_id() == m->disables) {
		pcp_disable(zone);
		CPUS_AWAIT(atomic_load_acquire(&m->freed));
		EXPECT_EQ(pcp_count(&m->a->mm, zone), 0);
		pcp_enable(zone);
	} else if (cpu_id() == m->holds) {
		struct page *page = alloc_order(m->a, 0);

		if (page)
			mm_page_free(&m->a->mm, page);
		atomic_fetch_add(&m->freed, 1);
	}
}

TEST(mm_pcp, a_cpu_that_begins_to_hold_is_seen_or_sees_that_it_must_not)
{
	const cpu_t other = cpus_find_other();
	struct page *kept;

	if (other == CPU_NONE)
		SKIP("needs two CPUs");
	meeting = (struct meeting){.a = arena_borrow(MIB(16), .phantom = GIB(1))};
	if (!meeting.a)
		return;
	/* The rest of its block is free, so no CPU splits a block and looks again after that. */
	kept = alloc_order(meeting.a, 0);
	REQUIRE(kept);
	for (unsigned i = 0; i < MEETINGS; i++) {
		meeting.holds = i % 2 ? other : cpu_id();
		meeting.disables = i % 2 ? cpu_id() : other;
		meeting.freed = 0;
		pcp_drain_all(&meeting.a->mm);
		cpus_run_together(hold_or_disable_once, &meeting);
	}
	mm_page_free(&meeting.a->mm, kept);
	EXPECT(arena_accounted(meeting.a));
	arena_return(meeting.a);
}
