/*
 * Migratetypes and isolation: free lists always hold what their blocks' types say, changes are whole or not at all, and
 * isolating a range and taking it back leaves everything as it was. On phantom memory: nothing is written to.
 */
#include "mm/migratetype.h"

#include "kernel/test.h"
#include "mm/buddy.h"
#include "mm/isolate.h"
#include "mm/page_alloc.h"
#include "mm/pcp.h"
#include "mm/transit.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/cpus.h"

enum { RANGE = 96, AT = 40 }; /* blocks: reaches over a section's border */

/* A gigabyte of phantom memory, open, nothing taken. */
static struct arena *borrow_gigabyte(void)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1));

	if (a)
		arena_open_all(a);
	return a;
}

static struct page *alloc_on_phantom(struct arena *a, unsigned order, enum page_use use)
{
	return mm_page_alloc(&a->mm, order, use, PAGE_NODE, a->options.nodes);
}

/* Frames on the free lists of one kind, small and large. */
static u64 listed(const struct zone *zone, enum migratetype list)
{
	u64 frames = 0;

	for (unsigned class = 0; class < FREE_CLASSES; class++)
		for (unsigned order = BLOCK_ORDER; order <= GIGA_ORDER; order++)
			for (u32 i = zone->block_list[class][list][order - BLOCK_ORDER]; i != BLOCK_NONE;
			     i = block_at(zone->mm, i)->next)
				frames += order_pages(order);
	for (unsigned order = 0; order < PAGE_ORDERS; order++)
		for (const struct page *page = zone->page_list[list][order]; page; page = page->next)
			frames += order_pages(order);
	return frames;
}

static bool one_free_gigabyte(const struct zone *zone)
{
	return zone->block_list[FREE_BARE][MIGRATE_MOVABLE][GIGA_ORDER - BLOCK_ORDER] != BLOCK_NONE;
}

TEST(mm_migratetype, a_range_changes_type_with_all_that_is_free_in_it)
{
	struct arena *a = borrow_gigabyte();
	struct zone *zone;
	u32 first;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	first = arena_phantom_block(a) + AT;
	EXPECT_EQ(migratetype_set(&a->mm, first, RANGE, MIGRATE_CMA), 0);
	EXPECT_EQ(listed(zone, MIGRATE_CMA), (u64)RANGE * BLOCK_FRAMES);
	EXPECT_EQ(listed(zone, MIGRATE_MOVABLE), order_pages(GIGA_ORDER) - (u64)RANGE * BLOCK_FRAMES);
	EXPECT(arena_accounted(a));
	EXPECT_EQ(migratetype_set(&a->mm, first, RANGE, MIGRATE_MOVABLE), 0);
	EXPECT(one_free_gigabyte(zone)); /* merged again as if nothing had been */
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_migratetype, small_free_pages_move_with_their_block)
{
	struct arena *a = borrow_gigabyte();
	struct page *page;
	struct zone *zone;
	u32 index;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	page = alloc_on_phantom(a, 4, USE_MOVABLE); /* no per-CPU list for this order */
	REQUIRE(page);
	index = (u32)(page_to_pfn(page) >> BLOCK_ORDER);
	EXPECT_EQ(migratetype_set(&a->mm, index, 1, MIGRATE_UNMOVABLE), 0);
	EXPECT_EQ(listed(zone, MIGRATE_UNMOVABLE), BLOCK_FRAMES - 16);
	EXPECT(arena_accounted(a));
	mm_page_free(&a->mm, page); /* freeing reads the type anew */
	EXPECT_EQ(listed(zone, MIGRATE_UNMOVABLE), BLOCK_FRAMES);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_migratetype, impossible_ranges_are_refused)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(1), .phantom_nodes = 2);
	u32 first;

	if (!a)
		return;
	arena_open_all(a);
	first = arena_phantom_block(a);
	EXPECT_EQ(migratetype_set(&a->mm, first, 0, MIGRATE_CMA), (u64)-EINVAL);
	EXPECT_EQ(migratetype_set(&a->mm, first + GIB_BLOCKS - 1, 2, MIGRATE_CMA), (u64)-EINVAL); /* beyond RAM */
	EXPECT_EQ(migratetype_set(&a->mm, first - 1, 2, MIGRATE_CMA), (u64)-EINVAL);
	EXPECT_EQ(migratetype_set(&a->mm, 0, ~0U, MIGRATE_CMA), (u64)-EINVAL);
	EXPECT_EQ(migratetype_set(&a->mm, first + GIB_BLOCKS / 2 - 1, 2, MIGRATE_CMA), (u64)-EINVAL); /* two zones */
	EXPECT_EQ(migratetype_set(&a->mm, first, 1, MIGRATE_TYPES), (u64)-EINVAL);
	EXPECT_EQ(migratetype_set(&a->mm, arena_block(a), 1, MIGRATE_CMA), (u64)-EBUSY); /* META */
	EXPECT_EQ(listed(arena_phantom_zone(a), MIGRATE_CMA), 0);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_migratetype, cma_serves_movable_pages_only)
{
	struct arena *a = borrow_gigabyte();
	struct zone *zone;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	EXPECT_EQ(migratetype_set(&a->mm, arena_phantom_block(a), GIB_BLOCKS, MIGRATE_CMA), 0);
	EXPECT(!alloc_on_phantom(a, 0, USE_UNMOVABLE));
	EXPECT(!alloc_on_phantom(a, 5, USE_RECLAIMABLE));
	EXPECT(!alloc_on_phantom(a, BLOCK_ORDER, USE_UNMOVABLE));
	EXPECT_EQ(listed(zone, MIGRATE_CMA), order_pages(GIGA_ORDER));
	EXPECT(alloc_on_phantom(a, 0, USE_MOVABLE) != NULL);
	EXPECT_EQ(block_type(block_at(&a->mm, arena_phantom_block(a) + 1)), MIGRATE_CMA);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(listed(zone, MIGRATE_CMA), order_pages(GIGA_ORDER) - 1);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* All memory is small movable pages but what is given back of one block. */
static struct page *fill_but(struct arena *a, unsigned chunks_left)
{
	struct page *page, *first = NULL;

	while ((page = mm_page_alloc(&a->mm, 5, USE_MOVABLE, 0, 0)))
		first = page;
	for (unsigned i = 0; first && i < chunks_left; i++)
		mm_page_free(&a->mm, pfn_page(&a->mm, ALIGN_DOWN(page_to_pfn(first), BLOCK_FRAMES) + 64 * i));
	return first;
}

TEST(mm_migratetype, a_half_free_block_is_claimed_and_a_fuller_one_lends_pages)
{
	struct arena *a;
	struct page *full, *other;

	for (unsigned half = 0; half < 2; half++) {
		a = arena_borrow(MIB(16));
		if (!a)
			return;
		full = fill_but(a, half ? 8 : 7); /* of 16 chunks */
		REQUIRE(full);
		other = mm_page_alloc(&a->mm, 5, USE_UNMOVABLE, 0, 0);
		REQUIRE(other);
		EXPECT_EQ(page_to_pfn(other) >> BLOCK_ORDER, page_to_pfn(full) >> BLOCK_ORDER);
		EXPECT_EQ(block_type(block_of(&a->mm, page_to_pfn(other))), half ? MIGRATE_UNMOVABLE : MIGRATE_MOVABLE);
		EXPECT_EQ(listed(arena_zone(a, 0), block_type(block_of(&a->mm, page_to_pfn(other)))), half ? 7 * 32 : 6 * 32);
		EXPECT(arena_accounted(a));
		arena_return(a);
	}
}

/* ---- isolation ---- */

TEST(mm_isolate, what_is_isolated_is_not_given_out_and_comes_back_whole)
{
	struct arena *a = borrow_gigabyte();
	struct block_list list = BLOCK_LIST_INIT;
	struct zone *zone;
	u32 first;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	first = arena_phantom_block(a) + AT;
	EXPECT_EQ(isolate_range(zone, first, RANGE), 0);
	EXPECT_EQ(listed(zone, MIGRATE_ISOLATE), (u64)RANGE * BLOCK_FRAMES);
	EXPECT(arena_accounted(a));
	spin_lock(&zone->lock);
	EXPECT(isolate_test(zone, first, RANGE));
	spin_unlock(&zone->lock);
	EXPECT_EQ(block_take(zone, FREE_BARE, BLOCK_ORDER, ~0ULL, BLOCK_HUGE, &list), GIB_BLOCKS - RANGE);
	for (u32 i = list.head; i != BLOCK_NONE; i = block_at(&a->mm, i)->next)
		if (i >= first && i < first + RANGE)
			test_fail(__FILE__, __LINE__, "block %u was given out while it was isolated", i);
	block_list_publish_free(&a->mm, &list);
	isolate_undo(zone, first, RANGE);
	EXPECT_EQ(listed(zone, MIGRATE_ISOLATE), 0);
	EXPECT(one_free_gigabyte(zone));
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_isolate, the_type_survives)
{
	struct arena *a = borrow_gigabyte();
	struct zone *zone;
	u32 first;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	first = arena_phantom_block(a) + AT;
	EXPECT_EQ(migratetype_set(&a->mm, first, 8, MIGRATE_RECLAIMABLE), 0);
	EXPECT_EQ(isolate_range(zone, first - 4, 16), 0);
	isolate_undo(zone, first - 4, 16);
	EXPECT_EQ(listed(zone, MIGRATE_RECLAIMABLE), 8 * BLOCK_FRAMES);
	EXPECT_EQ(block_type(block_at(&a->mm, first + 7)), MIGRATE_RECLAIMABLE);
	EXPECT_EQ(block_type(block_at(&a->mm, first + 8)), MIGRATE_MOVABLE);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_isolate, two_isolations_do_not_overlap)
{
	struct arena *a = borrow_gigabyte();
	struct zone *zone;
	u32 first;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	first = arena_phantom_block(a) + AT;
	EXPECT_EQ(isolate_range(zone, first, RANGE), 0);
	EXPECT_EQ(isolate_range(zone, first - AT, RANGE), (u64)-EBUSY);
	EXPECT_EQ(listed(zone, MIGRATE_ISOLATE), (u64)RANGE * BLOCK_FRAMES); /* the first one's, untouched */
	EXPECT(arena_accounted(a));
	EXPECT_EQ(isolate_range(zone, first + RANGE, 8), 0); /* neighbours may be isolated by two */
	isolate_undo(zone, first, RANGE);
	EXPECT_EQ(listed(zone, MIGRATE_ISOLATE), 8 * BLOCK_FRAMES);
	isolate_undo(zone, first + RANGE, 8);
	EXPECT(one_free_gigabyte(zone));
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_isolate, a_page_that_cannot_move_is_found_before_anything_is_moved)
{
	struct arena *a = borrow_gigabyte();
	struct zone *zone;
	struct page *page;
	u32 index;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	page = alloc_on_phantom(a, 3, USE_UNMOVABLE);
	REQUIRE(page);
	pcp_drain_all(&a->mm);
	index = (u32)(page_to_pfn(page) >> BLOCK_ORDER);
	EXPECT_EQ(isolate_range(zone, ALIGN_DOWN(index, SECTION_BLOCKS), SECTION_BLOCKS), (u64)-EBUSY);
	EXPECT_EQ(listed(zone, MIGRATE_ISOLATE), 0);
	EXPECT(arena_accounted(a));
	mm_page_free(&a->mm, page);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(isolate_range(zone, ALIGN_DOWN(index, SECTION_BLOCKS), SECTION_BLOCKS), 0);
	isolate_undo(zone, ALIGN_DOWN(index, SECTION_BLOCKS), SECTION_BLOCKS);
	EXPECT_EQ(listed(zone, MIGRATE_ISOLATE), 0);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* Every step of isolating fails once; each time all is as before. */
TEST(mm_isolate, every_failure_point_rolls_back)
{
	struct arena *a = borrow_gigabyte();
	struct zone *zone;
	u32 first, faults = 0;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	first = arena_phantom_block(a);
	/* Runs of many sizes, so that there are many steps. */
	for (u32 i = 1; i < GIB_BLOCKS; i += 24)
		EXPECT_EQ(migratetype_set(&a->mm, first + i, 1 + i % 3, MIGRATE_UNMOVABLE), 0);
	for (;; faults++) {
		int err;

		a->mm.fail_after = faults + 1;
		err = isolate_range(zone, first, GIB_BLOCKS);
		a->mm.fail_after = 0;
		if (err == 0)
			break;
		EXPECT_EQ(listed(zone, MIGRATE_ISOLATE), 0);
		EXPECT(arena_accounted(a));
	}
	EXPECT(faults > 40);
	isolate_undo(zone, first, GIB_BLOCKS);
	EXPECT_EQ(migratetype_set(&a->mm, first, GIB_BLOCKS, MIGRATE_MOVABLE), 0);
	EXPECT(one_free_gigabyte(zone));
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* ---- with others at work ---- */

struct publisher {
	struct arena *a;
	struct block_list list;
	u32 holding;
};

/* Holds a block in transit until somebody has isolated it. */
static void publish_when_isolated(void *arg)
{
	struct publisher *p = arg;
	const struct block *block = block_at(&p->a->mm, p->list.head);

	atomic_store_release(&p->holding, 1);
	while (!block_is_isolated(block))
		;
	block_list_publish_free(&p->a->mm, &p->list);
}

TEST(mm_isolate, a_block_in_transit_is_waited_for_and_published_isolated)
{
	struct publisher p = {.list = BLOCK_LIST_INIT};
	const cpu_t other = cpus_find_other();
	struct zone *zone;
	u32 index;

	if (other == CPU_NONE)
		SKIP("needs two CPUs");
	p.a = borrow_gigabyte();
	if (!p.a)
		return;
	zone = arena_phantom_zone(p.a);
	EXPECT_EQ(block_take(zone, FREE_BARE, BLOCK_ORDER, 1, BLOCK_HUGE, &p.list), 1);
	index = p.list.head;
	REQUIRE(work_start(other, publish_when_isolated, &p) == 0);
	EXPECT_EQ(isolate_range(zone, index, 4), 0);
	EXPECT_EQ(listed(zone, MIGRATE_ISOLATE), 4 * BLOCK_FRAMES);
	work_wait(other, 0);
	isolate_undo(zone, index, 4);
	EXPECT(one_free_gigabyte(zone));
	EXPECT(arena_accounted(p.a));
	arena_return(p.a);
}

/* Pages come and go on all CPUs while ranges are isolated and given back. */
struct churn {
	struct arena *a;
	u32 done, isolated;
};

static void churn(void *arg)
{
	struct churn *c = arg;
	struct zone *zone = arena_phantom_zone(c->a);
	struct page *pages[24] = {NULL};

	for (unsigned round = 0; round < 24; round++) {
		for (unsigned i = 0; i < ARRAY_LEN(pages); i++) {
			if (pages[i])
				mm_page_free(&c->a->mm, pages[i]);
			pages[i] = alloc_on_phantom(c->a, (round + i) % 10, i % 2 ? USE_MOVABLE : USE_UNMOVABLE);
		}
		if (round % 6 == 0) {
			const u32 first = arena_phantom_block(c->a) + (round * 7) % 400;

			if (isolate_range(zone, first, 32) == 0) {
				atomic_fetch_add(&c->isolated, 1);
				isolate_undo(zone, first, 32);
			}
		}
	}
	for (unsigned i = 0; i < ARRAY_LEN(pages); i++)
		if (pages[i])
			mm_page_free(&c->a->mm, pages[i]);
	atomic_fetch_add(&c->done, 1);
}

TEST(mm_isolate, ranges_come_and_go_while_pages_do)
{
	struct churn c = {.a = borrow_gigabyte()};
	cpu_t cpus;

	if (!c.a)
		return;
	cpus = cpus_run_together(churn, &c);
	EXPECT_EQ(c.done, cpus);
	EXPECT(c.isolated > 0);
	EXPECT_EQ(listed(arena_phantom_zone(c.a), MIGRATE_ISOLATE), 0);
	EXPECT(arena_accounted(c.a));
	pcp_drain_all(&c.a->mm);
	EXPECT(arena_small_lists_whole(c.a));
	EXPECT(arena_accounted(c.a));
	arena_return(c.a);
}
