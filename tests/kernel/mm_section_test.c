/*
 * Sections: they are opened in two styles, by one CPU or by all, and closed again without a trace.
 */
#include "tests/kernel/mm_test.h"

TEST_ARENA(mm_section, opened_on_demand_its_blocks_are_bare,
	   arena_borrow(MIB(2), .phantom = GIB(1)))
{
	const u64 section = arena_phantom_block(a) / SECTION_BLOCKS + 3;
	const u64 unopened = arena_phantom_zone(a)->unopened;
	const u32 end = (u32)((a->mm.first_gib + a->mm.gibs) * GIB_BLOCKS);

	EXPECT_EQ(section_state(&a->mm, section), SECTION_UNOPENED);
	EXPECT_EQ(section_open(&a->mm, section, SECTION_ON_DEMAND), 0);
	EXPECT_EQ(section_state(&a->mm, section), SECTION_OPEN);
	EXPECT_EQ(section_style(&a->mm, section), SECTION_ON_DEMAND);
	EXPECT_EQ(arena_phantom_zone(a)->unopened, unopened - SECTION_FRAMES);
	/* a range with blocks beyond all memory opens none */
	EXPECT_EQ(migratetype_set(&a->mm, end - 1, 2, MIGRATE_MOVABLE), -EINVAL);
	EXPECT_EQ(section_state(&a->mm, end / SECTION_BLOCKS - 1), SECTION_UNOPENED);
	for (u32 i = 0; i < SECTION_BLOCKS; i++) {
		const u32 index = (u32)(section * SECTION_BLOCKS) + i;
		const pte_t *line = vmemmap_line(&a->mm, index);

		REQUIRE(line);
		EXPECT_EQ(block_look_at(&a->mm, index).state, BLOCK_BARE);
		for (unsigned p = 0; p < PTES_PER_LINE; p++)
			EXPECT(!pte_present(pte_load(&line[p])));
	}
}

/*
 * In whatever order sections are opened, metadata memory's list of their struct pages stays sorted
 * by address. The account checks this.
 */
TEST_ARENA(mm_section, opened_in_any_order_their_struct_pages_are_counted_in_one,
	   arena_borrow(MIB(512)))
{
	const u64 first = arena_block(a) / SECTION_BLOCKS + 1;

	EXPECT_EQ(section_open(&a->mm, first, SECTION_MAPPED), 0);
	/* The section is open already if it holds the first struct pages. */
	EXPECT(section_open(&a->mm, first + 2, SECTION_MAPPED) <= 0);
	EXPECT(arena_accounted(a));
	/* The struct pages of this section lie between those of the other two. */
	EXPECT_EQ(section_open(&a->mm, first + 1, SECTION_MAPPED), 0);
	EXPECT(arena_accounted(a));
	sections_close_all(&a->mm);
}

/*
 * The RAM is 4 MiB and, a section further, 1 MiB that needs private struct pages. Metadata memory
 * has one frame left, which the table needs, and nothing to grow into.
 */
TEST_ARENA(mm_section, a_block_that_gets_no_struct_pages_is_accounted_for,
	   arena_borrow(MIB(256), .hole = {{MIB(4), MIB(251)}}))
{
	struct block_list taken = BLOCK_LIST_INIT;
	struct page peeked;
	u64 section, frames;
	struct node *node = &a->mm.node[0];

	section = arena_block(a) / SECTION_BLOCKS + 1;
	REQUIRE(block_take(arena_zone(a, 0), FREE_BARE, BLOCK_ORDER, 1, BLOCK_HUGE, &taken) == 1);
	frames = node->meta.free[META_LASTING] - 1;
	REQUIRE(meta_reserve_emergency(node, frames) == 0);
	EXPECT_EQ(section_open(&a->mm, section, SECTION_ON_DEMAND), 0);
	meta_unreserve(node, META_LASTING, frames);
	block_list_publish_free(&a->mm, &taken);
	EXPECT_EQ(block_look_at(&a->mm, (u32)((section + 1) * SECTION_BLOCKS) - 1).state,
		  BLOCK_ABSENT);
	EXPECT(!mm_page_peek(&a->mm, (section + 1) * SECTION_FRAMES - 1, &peeked));
	EXPECT_EQ(arena_usage(a).unopened, 0);
	EXPECT_EQ(arena_usage(a).reserved, MIB(1) / PAGE_SIZE);
	EXPECT(arena_accounted(a));
	EXPECT_EQ(section_close(&a->mm, section), -EBUSY);
}

/*
 *   MiB   0         128         256         384         512
 *         [META free | free boot | boot      | boot      ]
 *
 * The last section is opened first. It has no free block, so metadata memory opens a section to
 * grow: not the one below, which has none either, but the next, in which boot memory needs more
 * frames than are left for growing.
 */
TEST_ARENA(mm_section, a_section_that_metadata_memory_opens_may_be_full_of_boot_memory,
	   arena_borrow(MIB(512), .boot = {{MIB(132), MIB(380)}}))
{
	for (u32 i = 0; i < 4 * SECTION_BLOCKS; i++)
		EXPECT(block_look_at(&a->mm, arena_block(a) + i).state != BLOCK_ABSENT);
	EXPECT_EQ(arena_usage(a).reserved, 0);
}

/*
 * All memory but the metadata block is bad. It needs more struct pages than metadata memory has
 * frames, and metadata memory has nothing to grow into. The memory that gets no struct pages stays
 * counted as bad.
 */
TEST_ARENA(mm_section, bad_memory_that_gets_no_struct_pages_is_still_counted_as_bad,
	   arena_borrow(MIB(256), .bad = {{MIB(2), MIB(254)}}))
{
	unsigned given_up = 0;

	for (u32 i = 0; i < 2 * SECTION_BLOCKS; i++)
		given_up += block_look_at(&a->mm, arena_block(a) + i).state == BLOCK_ABSENT;
	EXPECT(given_up > 0);
	EXPECT_EQ(arena_usage(a).bad, MIB(254) / PAGE_SIZE);
}

/* ---- closing ---- */

struct picture {
	u64 unopened, free, memmap_bytes, tables;
};

static struct picture picture_of(struct arena *a)
{
	const struct mm_usage usage = arena_usage(a);

	return (struct picture){usage.unopened, usage.free, usage.memmap_bytes,
				mm_counted(&a->mm, COUNT_TABLES)};
}

static void expect_same_picture(struct arena *a, struct picture before)
{
	const struct picture now = picture_of(a);

	EXPECT_EQ(now.unopened, before.unopened);
	EXPECT_EQ(now.free, before.free);
	EXPECT_EQ(now.memmap_bytes, before.memmap_bytes);
	EXPECT_EQ(now.tables, before.tables);
	EXPECT(arena_accounted(a));
}

TEST_ARENA(mm_section, closed_it_leaves_no_trace_and_takes_one_round,
	   arena_borrow(MIB(2), .phantom = GIB(1)))
{
	struct picture before;
	u64 section, at;

	section = arena_phantom_block(a) / SECTION_BLOCKS;
	/* The records of the gigabyte stay, so an earlier section makes them. */
	EXPECT_EQ(section_open(&a->mm, section, SECTION_ON_DEMAND), 0);
	before = picture_of(a);
	EXPECT_EQ(section_open(&a->mm, section + 1, SECTION_ON_DEMAND), 0);
	at = rounds_so_far();
	EXPECT_EQ(section_close(&a->mm, section + 1), 0);
	EXPECT_EQ(rounds_so_far() - at, 1);
	EXPECT_EQ(section_state(&a->mm, section + 1), SECTION_UNOPENED);
	EXPECT(vmemmap_line(&a->mm, (u32)((section + 1) * SECTION_BLOCKS)) == NULL);
	for (u32 i = 0; i < SECTION_BLOCKS; i++)
		EXPECT_EQ(block_look_at(&a->mm, (u32)((section + 1) * SECTION_BLOCKS) + i).state,
			  BLOCK_UNOPENED);
	expect_same_picture(a, before);
}

/* The rounds that sections_close_all() takes for this number of open sections. */
static u64 rounds_to_close(struct arena *a, unsigned sections)
{
	u64 at;

	for (unsigned n = 0; n < sections; n++)
		EXPECT_EQ(section_open_next(arena_phantom_zone(a), SECTION_ON_DEMAND), 0);
	at = rounds_so_far();
	EXPECT_EQ(sections_close_all(&a->mm), sections);
	return rounds_so_far() - at;
}

TEST_ARENA(mm_section, free_sections_close_in_one_round, arena_borrow(MIB(8), .phantom = GIB(5)))
{
	const u64 one = rounds_to_close(a, 1);

	EXPECT(one > 0);
	EXPECT_EQ(rounds_to_close(a, 32), one);
	EXPECT_EQ(rounds_to_close(a, 33), one + 1); /* 32 share a round */
}

TEST_ARENA(mm_section, in_use_it_is_not_closed_and_nothing_changes, arena_usual())
{
	struct picture before;
	u64 section;
	struct page *page = mm_page_alloc(&a->mm, 8, USE_MOVABLE, PAGE_NODE, 1);

	REQUIRE(page);
	section = page_to_pfn(page) / SECTION_FRAMES;
	before = picture_of(a);
	EXPECT_EQ(section_close(&a->mm, section), -EBUSY);
	EXPECT_EQ(section_state(&a->mm, section), SECTION_OPEN);
	expect_same_picture(a, before);
	/* this section holds metadata memory */
	EXPECT_EQ(section_close(&a->mm, arena_block(a) / SECTION_BLOCKS), -EBUSY);
	mm_page_free(&a->mm, page);
	EXPECT_EQ(section_close(&a->mm, section), 0); /* full blocks close as well as bare ones */
}

/*
 * Absent blocks do not keep a section open, but a block that is isolated or set aside (CMA) does.
 */
TEST_ARENA(mm_section, a_hole_does_not_keep_it_open_but_a_set_aside_range_does,
	   arena_borrow(MIB(256), .hole = {{MIB(192), MIB(2)}}))
{
	const u64 section = arena_block(a) / SECTION_BLOCKS + 1;
	const u32 cma = (u32)section * SECTION_BLOCKS + 3;

	EXPECT_EQ(section_open(&a->mm, section, SECTION_ON_DEMAND), 0);
	EXPECT_EQ(migratetype_set(&a->mm, cma, 1, MIGRATE_CMA), 0);
	EXPECT_EQ(section_close(&a->mm, section), -EBUSY);
	EXPECT_EQ(section_state(&a->mm, section), SECTION_OPEN);
	EXPECT_EQ(migratetype_set(&a->mm, cma, 1, MIGRATE_MOVABLE), 0);
	EXPECT_EQ(section_close(&a->mm, section), 0);
	EXPECT_EQ(section_state(&a->mm, section), SECTION_UNOPENED);
}

TEST_ARENA(mm_section, what_was_closed_is_opened_again_before_what_nobody_touched,
	   arena_borrow(MIB(8), .phantom = GIB(4)))
{
	struct zone *zone = arena_phantom_zone(a);
	const u64 first = zone->start_pfn / SECTION_FRAMES;

	for (unsigned turn = 0; turn < 3; turn++) {
		for (unsigned n = 0; n < 3; n++) {
			EXPECT_EQ(section_state(&a->mm, first + n), SECTION_UNOPENED);
			EXPECT_EQ(section_open_next(zone, SECTION_ON_DEMAND), 0);
			EXPECT_EQ(section_state(&a->mm, first + n), SECTION_OPEN);
		}
		EXPECT_EQ(sections_close_all(&a->mm), 3);
	}
}

/* ---- all CPUs ---- */

struct late_opening {
	struct arena *a;
	u8 *slot; /* of a section that seems to be opening until the first CPU says otherwise */
	u32 cpus, waiting, opened;
};

static void open_late(void *arg)
{
	struct late_opening *o = arg;
	const u32 first = arena_phantom_block(o->a);
	u64 since;

	if (atomic_fetch_add(&o->cpus, 1) > 0) {
		atomic_fetch_add(&o->waiting, 1);
		if (section_open_range(&o->a->mm, first, SECTION_BLOCKS, SECTION_ON_DEMAND) == 0)
			atomic_fetch_add(&o->opened, 1);
		return;
	}
	CPUS_WAIT_FOR(atomic_load_relaxed(&o->waiting) != 0 || cpumask_weight(&cpus_online) <= 1,
		      CPU_NONE, "a CPU that waits for a section");
	since = clock_ns();
	while (clock_ns() - since < 5 * NS_PER_MS)
		cpu_relax();
	atomic_store_release(o->slot, (u8)(SECTION_OPEN | SECTION_ON_DEMAND));
}

TEST_ARENA(mm_section, a_range_that_another_cpu_opens_meanwhile_is_open,
	   arena_borrow(MIB(2), .phantom = GIB(1)))
{
	const u64 section = arena_phantom_block(a) / SECTION_BLOCKS;
	struct late_opening o = {.a = a};
	cpu_t cpus;

	if (section_state(&a->mm, section) != SECTION_OPEN)
		REQUIRE(section_open(&a->mm, section, SECTION_ON_DEMAND) == 0);
	o.slot = &a->mm.gib[section / GIB_SECTIONS - a->mm.first_gib]
			  .section[section % GIB_SECTIONS];
	atomic_store_release(o.slot, (u8)SECTION_OPENING);
	cpus = cpus_run_together(open_late, &o);
	EXPECT_EQ(o.opened, cpus - 1);
}

struct closers {
	struct arena *a;
	u32 closed;
};

static void close_first(void *arg)
{
	struct closers *c = arg;

	if (section_close(&c->a->mm, arena_phantom_block(c->a) / SECTION_BLOCKS) == 0)
		atomic_fetch_add(&c->closed, 1);
}

TEST_ARENA(mm_section, of_several_cpus_that_close_it_one_does,
	   arena_borrow(MIB(2), .phantom = GIB(1)))
{
	struct closers c = {.a = a};

	EXPECT_EQ(section_open(&a->mm, arena_phantom_block(a) / SECTION_BLOCKS, SECTION_ON_DEMAND),
		  0);
	cpus_run_together(close_first, &c);
	EXPECT_EQ(c.closed, 1);
}

struct finders {
	struct arena *a;
	u32 next;
	u64 found;
};

static void close_or_find(void *arg)
{
	struct finders *f = arg;
	const u32 me = atomic_fetch_add(&f->next, 1);

	if (me == 0)
		sections_close_all(&f->a->mm);
	else if (me == 1)
		f->found = pool_grow(&f->a->pool, hvo_on(), 1);
}

/* For a moment, sections that close at the same time may hold all free memory. */
TEST_ARENA(mm_section, while_all_of_them_close_a_pool_still_grows,
	   arena_borrow(MIB(2), .phantom = GIB(1)))
{
	struct finders f = {.a = a};
	cpu_t cpus;

	for (unsigned i = 0; i < GIB_SECTIONS; i++)
		EXPECT_EQ(section_open_next(arena_phantom_zone(a), SECTION_ON_DEMAND), 0);
	cpus = cpus_run_together(close_or_find, &f);
	EXPECT_EQ(f.found, cpus > 1);
}
