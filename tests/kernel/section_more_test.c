/*
 * Opening many sections at once, and the sections that a large pool leaves to metadata memory.
 */
#include "kernel/core/percpu.h"
#include "kernel/run/test.h"
#include "mm/hugetlb/pool.h"
#include "mm/hvo/hvo_take.h"
#include "mm/memmap/block_state.h"
#include "mm/page/pcp.h"
#include "mm/zone/migratetype.h"
#include "mm/zone/section.h"
#include "mm/zone/section_more.h"
#include "mm/zone/transit.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/cpus.h"

enum { PHANTOM_GIB = 8 };

static u64 open_sections_of(struct arena *a)
{
	const u64 first = arena_phantom_block(a) / SECTION_BLOCKS;
	u64 open = 0;

	for (u64 section = first; section < first + PHANTOM_GIB * GIB_SECTIONS; section++)
		open += section_state(&a->mm, section) == SECTION_OPEN;
	return open;
}

static bool gib_is_open(struct arena *a, unsigned gib)
{
	const u64 first = arena_phantom_block(a) / SECTION_BLOCKS + gib * GIB_SECTIONS;
	unsigned open = 0;

	while (open < GIB_SECTIONS && section_state(&a->mm, first + open) == SECTION_OPEN)
		open++;
	return open == GIB_SECTIONS;
}

TEST(mm_section, opened_ahead_as_many_as_asked_for_by_any_number_of_cpus)
{
	static const unsigned threads[] = {1, 2, 4, 64};

	for (unsigned i = 0; i < ARRAY_LEN(threads); i++) {
		struct arena *a = arena_borrow(MIB(8), .phantom = GIB(PHANTOM_GIB));

		if (!a)
			return;
		sections_open_ahead(arena_phantom_zone(a), BLOCK_ORDER, SECTION_ON_DEMAND,
				    20 * SECTION_BLOCKS, threads[i]);
		EXPECT_EQ(open_sections_of(a), 20);
		EXPECT(gib_is_open(a, 0) && gib_is_open(a, 1));
		EXPECT_EQ(arena_phantom_zone(a)->free_class[FREE_BARE], 20 * (u64)SECTION_FRAMES);
		EXPECT(arena_accounted(a));
		/* This opens the next section, not the first one again. */
		EXPECT_EQ(section_open_next(arena_phantom_zone(a), SECTION_ON_DEMAND), 0);
		EXPECT_EQ(open_sections_of(a), 21);
		sections_open_ahead(arena_phantom_zone(a), BLOCK_ORDER, SECTION_ON_DEMAND, ~0ULL,
				    threads[i]);
		EXPECT_EQ(open_sections_of(a), PHANTOM_GIB * GIB_SECTIONS);
		EXPECT(arena_accounted(a));
		arena_return(a);
	}
}

TEST_ARENA(mm_section, opened_ahead_for_1g_pages_are_gigabytes_that_nobody_used,
	   arena_borrow(MIB(8), .phantom = GIB(PHANTOM_GIB)))
{
	EXPECT_EQ(section_open(&a->mm, arena_phantom_block(a) / SECTION_BLOCKS + GIB_SECTIONS,
			       SECTION_ON_DEMAND),
		  0);
	sections_open_ahead(arena_phantom_zone(a), GIGA_ORDER, SECTION_ON_DEMAND, 3, 4);
	EXPECT_EQ(open_sections_of(a), 2 * GIB_SECTIONS + 1);
	EXPECT(gib_is_open(a, 0) && !gib_is_open(a, 1) && gib_is_open(a, 2) && !gib_is_open(a, 3));
}

/*
 * Two nodes share 8 GiB. Their border lies 320 MiB above the fourth GiB, inside a GiB and in the
 * middle of a section. Sections and GiB that do not belong to one zone alone are left to
 * section_open_next().
 */
TEST(mm_section, opened_ahead_up_to_the_zones_borders)
{
	enum { LOWER, UPPER };
	static const struct {
		unsigned node, order;
		u64 open;
	} expected[] = {
		{LOWER, GIGA_ORDER, 4 * GIB_SECTIONS},
		{LOWER, BLOCK_ORDER, 4 * GIB_SECTIONS + 2},
		{UPPER, GIGA_ORDER, 3 * GIB_SECTIONS},
		{UPPER, BLOCK_ORDER, 4 * GIB_SECTIONS - 3},
	};

	for (unsigned i = 0; i < ARRAY_LEN(expected); i++) {
		struct arena *a = arena_borrow(MIB(16), .phantom = GIB(PHANTOM_GIB),
					       .phantom_nodes = 2, .phantom_skew = MIB(320));
		struct zone *zone;

		if (!a)
			return;
		zone = arena_zone(a, (node_t)(a->options.nodes + expected[i].node));
		sections_open_ahead(zone, expected[i].order, SECTION_ON_DEMAND, ~0ULL, 2);
		EXPECT_EQ(open_sections_of(a), expected[i].open);
		EXPECT(arena_accounted(a));
		arena_return(a);
	}
}

/* The number of sections that CPUs other than this one have opened. */
static u64 opened_by_others(const struct mm *mm)
{
	u64 blocks = 0;

	for (cpu_t cpu = 0; cpu < cpu_count; cpu++)
		if (cpu != cpu_id())
			blocks += mm->pcp[cpu]->counts->change[BLOCK_UNOPENED][BLOCK_BARE];
	return blocks / SECTION_BLOCKS;
}

/* A large pool opens the sections that it lacks, and no more, and idle CPUs may help. */
TEST_ARENA(mm_pool, what_a_large_one_lacks_is_opened_ahead,
	   arena_borrow(MIB(16), .phantom = GIB(PHANTOM_GIB)))
{
	enum { OPEN = 10, PAGES = 32 * SECTION_BLOCKS };
	const struct hvo_mode *on = hvo_mode_find("on");

	test_option("hvo.threads", "4");
	test_option("hvo.threads_pages", "64");
	for (unsigned i = 0; i < OPEN; i++)
		EXPECT_EQ(section_open_next(arena_phantom_zone(a), SECTION_ON_DEMAND), 0);
	EXPECT_EQ(pool_grow_on(&a->pool, on, arena_phantom_zone(a)->node, PAGES), PAGES);
	EXPECT_EQ(open_sections_of(a), PAGES / SECTION_BLOCKS);
	cpus_note_met(opened_by_others(&a->mm), "sections that helpers opened");
}

/*
 * Each pass fails in turn. The other sections are opened, and a GiB that lacks one is closed again.
 */
TEST(mm_section, opened_ahead_all_but_the_one_that_fails)
{
	for (u32 nth = 1; nth <= GIB_SECTIONS + 1; nth++) {
		struct arena *a = arena_borrow(MIB(8), .phantom = GIB(PHANTOM_GIB));
		u64 before;

		if (!a)
			return;
		fail_arm(&a->mm.fail, FAIL_OPEN, nth, FAIL_ONCE);
		sections_open_ahead(arena_phantom_zone(a), BLOCK_ORDER, SECTION_ON_DEMAND,
				    GIB_BLOCKS, 2);
		EXPECT_EQ(fail_disarm(&a->mm.fail), nth <= GIB_SECTIONS);
		EXPECT_EQ(open_sections_of(a), GIB_SECTIONS - (nth <= GIB_SECTIONS));
		before = open_sections_of(a);
		fail_arm(&a->mm.fail, FAIL_OPEN, nth, FAIL_ONCE);
		sections_open_ahead(arena_phantom_zone(a), GIGA_ORDER, SECTION_ON_DEMAND, 3, 2);
		EXPECT(fail_disarm(&a->mm.fail));
		EXPECT_EQ(open_sections_of(a), before + 2 * GIB_SECTIONS);
		EXPECT(arena_accounted(a));
		arena_return(a);
	}
}

/* The number of blocks of a section that are in use as huge pages. */
static u32 huge_in(const struct mm *mm, u64 section)
{
	u32 huge = 0;

	for (u32 index = (u32)(section * SECTION_BLOCKS); index < (section + 1) * SECTION_BLOCKS;
	     index++)
		huge += block_look_at(mm, index).state == BLOCK_HUGE;
	return huge;
}

/*
 * Metadata memory opens sections for itself in this way: the section at the far end, with its free
 * blocks unmovable.
 */
TEST_ARENA(mm_pool, what_meta_opened_is_taken_last, arena_borrow(MIB(8), .phantom = GIB(1)))
{
	const struct hvo_mode *on = hvo_mode_find("on");
	const u64 last = arena_phantom_block(a) / SECTION_BLOCKS + GIB_SECTIONS - 1;

	REQUIRE(section_open(&a->mm, last, SECTION_ON_DEMAND) == 0);
	REQUIRE(section_open(&a->mm, last - 1, SECTION_ON_DEMAND) == 0);
	migratetype_set(&a->mm, (u32)(last * SECTION_BLOCKS), SECTION_BLOCKS, MIGRATE_UNMOVABLE);
	/* These are taken before another section is opened. */
	migratetype_set(&a->mm, (u32)((last - 1) * SECTION_BLOCKS), SECTION_BLOCKS,
			MIGRATE_RECLAIMABLE);
	EXPECT_EQ(pool_grow_on(&a->pool, on, arena_phantom_zone(a)->node, SECTION_BLOCKS),
		  SECTION_BLOCKS);
	EXPECT_EQ(huge_in(&a->mm, last - 1), SECTION_BLOCKS);
	EXPECT_EQ(pool_grow_on(&a->pool, on, arena_phantom_zone(a)->node,
			       GIB_BLOCKS - 2 * SECTION_BLOCKS),
		  GIB_BLOCKS - 2 * SECTION_BLOCKS);
	EXPECT_EQ(huge_in(&a->mm, last), 0);
	/* No other memory is left. */
	EXPECT_EQ(pool_grow_on(&a->pool, on, arena_phantom_zone(a)->node, 1), 1);
	EXPECT_EQ(huge_in(&a->mm, last), 1);
}

/*
 * At boot, preinit makes pages as `on` does. Pages that were given back are free and huge, and
 * preinit finds them again before it has to remap any.
 */
TEST_ARENA(mm_hvo, preinit_takes_again_what_was_born_at_boot,
	   arena_borrow(MIB(8), .phantom = GIB(1)))
{
	enum { PAGES = 100 };
	u64 recycled;

	EXPECT_EQ(pool_grow(&a->pool, hvo_mode_find("on"), PAGES), PAGES);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_mode_find("preinit"), PAGES), PAGES);
	recycled = block_changes(&a->mm, BLOCK_FULL, BLOCK_HUGE);
	EXPECT_EQ(pool_grow(&a->pool, hvo_mode_find("preinit"), PAGES), PAGES);
	EXPECT_EQ(block_changes(&a->mm, BLOCK_FULL, BLOCK_HUGE), recycled);
}

/* 1 GiB pages that were born at boot and given back serve requests for smaller ones. */
TEST_ARENA(mm_giga, preinit_takes_apart_what_was_born_at_boot,
	   arena_borrow(MIB(16), .phantom = GIB(2)))
{
	const struct hvo_mode *preinit = hvo_mode_find("preinit");
	struct block_list giga = BLOCK_LIST_INIT, left = BLOCK_LIST_INIT;

	EXPECT_EQ(hvo_take_blocks(arena_phantom_zone(a), hvo_mode_find("on"), GIGA_ORDER, 2, &giga),
		  2);
	EXPECT_EQ(hvo_optimise(&a->mm, hvo_mode_find("on"), &giga, &left), 0);
	block_list_publish_free(&a->mm, &giga);
	EXPECT_EQ(pool_grow_on(&a->pool, preinit, arena_phantom_zone(a)->node, GIB_BLOCKS),
		  GIB_BLOCKS);
}
