/*
 * The places of mapped sections' struct pages follow from arithmetic, whichever CPU opens the
 * sections.
 */
#include <arch/stream.h>

#include "kernel/core/percpu.h"
#include "kernel/core/wait.h"
#include "kernel/lib/string.h"
#include "kernel/run/test.h"
#include "mm/memmap/memmap.h"
#include "mm/memmap/vmemmap.h"
#include "mm/page/page_alloc.h"
#include "mm/zone/section.h"
#include "mm/zone/section_close.h"
#include "mm/zone/section_memmap.h"
#include "mm/zone/transit.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/cpus.h"

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
		EXPECT(arena_accounted(a));
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
TEST(mm_section, one_that_is_being_opened_counts_as_moving)
{
	const cpu_t cpu = cpus_find_other();
	struct slow_opening o = {.a = NULL};
	struct wait wait;

	if (cpu == CPU_NONE)
		SKIP("needs two CPUs");
	o.a = arena_borrow(MIB(256));
	if (!o.a)
		return;
	o.section = arena_block(o.a) / SECTION_BLOCKS + 1;
	EXPECT_EQ(sections_moving(&o.a->mm), 0);
	spin_lock(&o.a->mm.node[0].meta.lock);
	REQUIRE(work_start(cpu, open_slowly, &o) == 0);
	wait = wait_begin(WAIT_ANSWER, "a section to be claimed");
	while (section_state(&o.a->mm, o.section) != SECTION_OPENING)
		wait_spin(&wait, cpu);
	EXPECT_EQ(sections_moving(&o.a->mm), 1);
	spin_unlock(&o.a->mm.node[0].meta.lock);
	work_wait(cpu, 0);
	EXPECT_EQ(o.err, 0);
	EXPECT_EQ(sections_moving(&o.a->mm), 0);
	EXPECT(arena_accounted(o.a));
	arena_return(o.a);
}
