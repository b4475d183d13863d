/*
 * The places of mapped sections' struct pages follow from arithmetic, whichever CPU opens the
 * sections.
 */

#include "mm/hvo/hvo_take.h"
#include "mm/zone/section_memmap.h"
#include "mm/zone/section_more.h"
#include "tests/kernel/mm_test.h"

/*
 * Check every section that has a home: the home lies inside the zone, and no two homes are the
 * same. Returns how many sections have one.
 */
static unsigned check_homes(const struct zone *zone, u64 first, u64 end)
{
	unsigned found = 0;

	for (u64 section = first; section < end; section++) {
		const u32 home = section_home(zone, section);

		if (home == BLOCK_NONE)
			continue;
		found++;
		EXPECT(block_pfn(home) >= zone->start_pfn &&
		       block_pfn(home) + BLOCK_FRAMES <= zone->end_pfn);
		for (u64 other = first; other < section; other++)
			if (section_home(zone, other) == home)
				test_fail(__FILE__, __LINE__,
					  "sections %llu and %llu share block %u", other, section,
					  home);
	}
	return found;
}

struct opener {
	struct arena *a;
	u32 opened;
};

static void open_mapped_from_both_ends(void *arg)
{
	struct opener *o = arg;
	const u64 first = arena_block(o->a) / SECTION_BLOCKS,
		  count = o->a->options.bytes / (PAGE_SIZE * SECTION_FRAMES);

	for (u64 i = 0; i < count; i++) {
		const u64 section = first + (cpu_id() % 2 ? i : count - 1 - i);

		if (section_open(&o->a->mm, section, SECTION_MAPPED) == 0)
			atomic_fetch_add(&o->opened, 1);
	}
}

/*
 * The zone's last section is either open already or, if its end is broken up, the home of all
 * struct pages; then the first CPU that needs it opens it.
 */
static void check_reopening(struct arena *a, u64 sections)
{
	const u64 first = arena_block(a) / SECTION_BLOCKS;
	struct opener o = {.a = a};

	EXPECT_EQ(check_homes(arena_zone(a, 0), first, first + sections), sections);
	for (unsigned turn = 0; turn < 4; turn++) {
		o.opened = 0;
		cpus_run_together(open_mapped_from_both_ends, &o);
		EXPECT_EQ(arena_usage(a).unopened, 0);
		for (u64 section = first; section < first + sections; section++) {
			if (section_style(&a->mm, section) != SECTION_MAPPED)
				continue; /* it has been open since start-up, for metadata memory */
			EXPECT_EQ(section_memmap(&a->mm, section),
				  section_home(arena_zone(a, 0), section));
		}
		EXPECT(o.opened > 0);
		EXPECT(arena_accounted(a));
		sections_close_all(&a->mm);
	}
}

TEST_ARENA(mm_section, reopened_by_any_cpu_its_struct_pages_lie_where_they_were,
	   arena_borrow(MIB(512)))
{
	check_reopening(a, 4);
}

TEST_ARENA(mm_section, a_home_in_an_unopened_section_is_opened_first,
	   arena_borrow(MIB(512), .short_by = MIB(1)))
{
	const u64 first = arena_block(a) / SECTION_BLOCKS;

	EXPECT_EQ(section_home(arena_zone(a, 0), first) / SECTION_BLOCKS, first + 3);
	EXPECT_EQ(section_open(&a->mm, first + 1, SECTION_MAPPED), 0);
	EXPECT_EQ(section_state(&a->mm, first + 2), SECTION_UNOPENED);
	EXPECT_EQ(section_state(&a->mm, first + 3), SECTION_OPEN);
	EXPECT_EQ(section_memmap(&a->mm, first + 1), section_home(arena_zone(a, 0), first + 1));
	sections_close_all(&a->mm);
	check_reopening(a, 4);
}

/*
 * If homes move inwards, all of them become other blocks, and all sections can be opened. If homes
 * move back, they are the same blocks as before.
 */
TEST_ARENA(mm_section, homes_can_be_moved_and_moved_back, arena_borrow(MIB(512)))
{
	u32 home[4];
	struct zone *zone = arena_zone(a, 0);
	const u64 first = arena_block(a) / SECTION_BLOCKS;

	for (unsigned i = 0; i < 4; i++)
		home[i] = section_home(zone, first + i);
	for (u32 skip = 5; skip < 200; skip += 60) {
		section_place_memmaps(zone, skip);
		check_homes(zone, first, first + 4);
		for (unsigned i = 0; i < 4; i++)
			for (unsigned k = 0; k < 4; k++)
				EXPECT(section_home(zone, first + i) != home[k]);
		for (unsigned i = 0; i < 4; i++)
			section_open(&a->mm, first + i, SECTION_MAPPED);
		EXPECT_EQ(arena_usage(a).unopened, 0);
		EXPECT(arena_accounted(a));
		sections_close_all(&a->mm);
	}
	section_place_memmaps(zone, 0);
	for (unsigned i = 0; i < 4; i++)
		EXPECT_EQ(section_home(zone, first + i), home[i]);
	check_reopening(a, 4);
}

/* ---- how struct pages are made ---- */

/* The number of turns at a lock so far, which its tickets count. */
static u16 turns_at(const struct spinlock *lock)
{
	return atomic_load_relaxed(&lock->next);
}

/*
 * The baselines free a section in pieces of 4 MiB, each with a turn at the zone's lock. Ours takes
 * one turn for all neighbouring blocks.
 */
TEST(mm_section, the_baselines_free_pieces_of_max_order)
{
	for (const struct memmap_make *make = memmap_makes; make->name; make++) {
		struct arena *a = arena_borrow(MIB(256));
		u64 section;
		u16 before;

		if (!a)
			return;
		section = arena_block(a) / SECTION_BLOCKS + 1;
		before = turns_at(&arena_zone(a, 0)->lock);
		EXPECT_EQ(section_open_by(&a->mm, section, SECTION_MAPPED, make), 0);
		if (make == &memmap_makes[MAKE_STREAM])
			EXPECT((u16)(turns_at(&arena_zone(a, 0)->lock) - before) < 16);
		else
			EXPECT((u16)(turns_at(&arena_zone(a, 0)->lock) - before) >=
			       SECTION_FRAMES >> MAKE_STEP_ORDER);
		arena_return(a);
	}
}

/* Each way must write all 64 bytes of each struct page and nothing beyond. */
TEST(mm_section, struct_pages_are_the_same_whoever_writes_them)
{
	enum { COUNT = 63, ORDER = 0 };
	struct page *page = page_alloc(ORDER, USE_MOVABLE, 0, NODE_NONE),
		    *other = page_alloc(ORDER, USE_MOVABLE, 0, NODE_NONE);

	REQUIRE(page && other);
	memset(page_address(page), 0xa5, PAGE_SIZE);
	memmap_init_pages(page_address(page), COUNT, 3);
	for (const struct memmap_make *make = memmap_makes; make->name; make++) {
		memset(page_address(other), 0xa5, PAGE_SIZE);
		make->write(page_address(other), COUNT, 3);
		fence_store_nt();
		if (memcmp(page_address(page), page_address(other), PAGE_SIZE) != 0)
			test_fail(__FILE__, __LINE__, "those of %s differ", make->name);
	}
	page_free(page);
	page_free(other);
}

/* ---- sections that are being opened ---- */

struct slow_opening {
	struct arena *a;
	u64 section;
	int err;
};

static void open_slowly(void *arg)
{
	struct slow_opening *o = arg;

	o->err = section_open(&o->a->mm, o->section, SECTION_ON_DEMAND);
}

/* Opening needs metadata memory's lock, which this CPU keeps meanwhile. */
TEST_ARENA(mm_section, one_that_is_being_opened_counts_as_moving,
	   cpus_needed(2) ? arena_borrow(MIB(256)) : NULL)
{
	const cpu_t cpu = cpus_find_other();
	struct slow_opening o = {.a = a, .section = arena_block(a) / SECTION_BLOCKS + 1};

	EXPECT_EQ(sections_moving(&a->mm), 0);
	spin_lock(&a->mm.node[0].meta.lock);
	REQUIRE(work_start(cpu, open_slowly, &o) == 0);
	CPUS_WAIT_FOR(section_state(&a->mm, o.section) == SECTION_OPENING, cpu,
		      "a section to be claimed");
	EXPECT_EQ(sections_moving(&a->mm), 1);
	spin_unlock(&a->mm.node[0].meta.lock);
	work_wait(cpu, 0);
	EXPECT_EQ(o.err, 0);
	EXPECT_EQ(sections_moving(&a->mm), 0);
}

/* ---- many sections at once ---- */

/*
 * Opening many sections at once, and the sections that a large pool leaves to metadata memory.
 */

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
		arena_return(a);
	}
}

TEST_ARENA(mm_section, opened_ahead_for_1g_pages_are_gigabytes_that_nobody_used,
	   arena_borrow(MIB(8), .phantom = GIB(PHANTOM_GIB)))
{
	const u64 first = arena_phantom_block(a) / SECTION_BLOCKS,
		  count = PHANTOM_GIB * GIB_SECTIONS;

	/* the second zone has homes, too */
	EXPECT_EQ(check_homes(arena_phantom_zone(a), first, first + count), count);
	EXPECT_EQ(section_open(&a->mm, first + GIB_SECTIONS, SECTION_ON_DEMAND), 0);
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
		arena_return(a);
	}
}

/* A large pool opens the sections that it lacks, and no more; how many helpers open is told. */
TEST_ARENA(mm_pool, what_a_large_one_lacks_is_opened_ahead,
	   arena_borrow(MIB(16), .phantom = GIB(PHANTOM_GIB)))
{
	enum { OPEN = 10, PAGES = 32 * SECTION_BLOCKS };

	test_option("hvo.threads", "4");
	test_option("hvo.threads_pages", "64");
	for (unsigned i = 0; i < OPEN; i++)
		EXPECT_EQ(section_open_next(arena_phantom_zone(a), SECTION_ON_DEMAND), 0);
	EXPECT_EQ(pool_grow_on(&a->pool, hvo_on(), arena_phantom_zone(a)->node, PAGES), PAGES);
	EXPECT_EQ(open_sections_of(a), PAGES / SECTION_BLOCKS);
	cpus_note_met(arena_changes_by_others(a, BLOCK_UNOPENED, BLOCK_BARE) / SECTION_BLOCKS,
		      "sections that helpers opened");
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
	const u64 last = arena_phantom_block(a) / SECTION_BLOCKS + GIB_SECTIONS - 1;

	REQUIRE(section_open(&a->mm, last, SECTION_ON_DEMAND) == 0);
	REQUIRE(section_open(&a->mm, last - 1, SECTION_ON_DEMAND) == 0);
	migratetype_set(&a->mm, (u32)(last * SECTION_BLOCKS), SECTION_BLOCKS, MIGRATE_UNMOVABLE);
	/* These are taken before another section is opened. */
	migratetype_set(&a->mm, (u32)((last - 1) * SECTION_BLOCKS), SECTION_BLOCKS,
			MIGRATE_RECLAIMABLE);
	EXPECT_EQ(pool_grow_on(&a->pool, hvo_on(), arena_phantom_zone(a)->node, SECTION_BLOCKS),
		  SECTION_BLOCKS);
	EXPECT_EQ(huge_in(&a->mm, last - 1), SECTION_BLOCKS);
	EXPECT_EQ(pool_grow_on(&a->pool, hvo_on(), arena_phantom_zone(a)->node,
			       GIB_BLOCKS - 2 * SECTION_BLOCKS),
		  GIB_BLOCKS - 2 * SECTION_BLOCKS);
	EXPECT_EQ(huge_in(&a->mm, last), 0);
	/* No other memory is left. */
	EXPECT_EQ(pool_grow_on(&a->pool, hvo_on(), arena_phantom_zone(a)->node, 1), 1);
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

	EXPECT_EQ(pool_grow(&a->pool, hvo_on(), PAGES), PAGES);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_mode_find("preinit"), PAGES), PAGES);
	recycled = mm_counted(&a->mm, COUNT_CHANGE(BLOCK_FULL, BLOCK_HUGE));
	EXPECT_EQ(pool_grow(&a->pool, hvo_mode_find("preinit"), PAGES), PAGES);
	EXPECT_EQ(mm_counted(&a->mm, COUNT_CHANGE(BLOCK_FULL, BLOCK_HUGE)), recycled);
}

/* 1 GiB pages that were born at boot and given back serve requests for smaller ones. */
TEST_ARENA(mm_giga, preinit_takes_apart_what_was_born_at_boot,
	   arena_borrow(MIB(16), .phantom = GIB(2)))
{
	const struct hvo_mode *preinit = hvo_mode_find("preinit");
	struct block_list giga = BLOCK_LIST_INIT, left = BLOCK_LIST_INIT;

	EXPECT_EQ(hvo_take_blocks(arena_phantom_zone(a), hvo_on(), GIGA_ORDER, 2, &giga), 2);
	EXPECT_EQ(hvo_optimise(&a->mm, hvo_on(), &giga, &left), 0);
	block_list_publish_free(&a->mm, &giga);
	EXPECT_EQ(pool_grow_on(&a->pool, preinit, arena_phantom_zone(a)->node, GIB_BLOCKS),
		  GIB_BLOCKS);
}
