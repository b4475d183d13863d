/*
 * Contiguous ranges while other CPUs work on the same memory: the states that are waited for, those
 * that are not, and the allocations that a declared range keeps out.
 */
#include <arch/clock.h>

#include "kernel/run/test.h"
#include "mm/contig/contig.h"
#include "mm/page/page_alloc.h"
#include "mm/page/pcp.h"
#include "mm/page/pcp_drain.h"
#include "mm/zone/buddy.h"
#include "mm/zone/isolate.h"
#include "mm/zone/migratetype.h"
#include "mm/zone/transit.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/holder.h"
#include "tests/kernel/listed.h"
#include "tests/kernel/said.h"

enum { HOLDER_SLOTS = 2 * GIB_BLOCKS, A_MOMENT = 300 * 1000 /* ns, many passes over a range */ };

static struct page *slots[HOLDER_SLOTS];
static struct holder holder;

/* ---- CMA ---- */

TEST_ARENA(mm_contig, what_cpus_hold_of_a_declared_range_is_not_given_out_as_before,
	   arena_borrow(MIB(32)))
{
	struct page *page[8];
	pfn_t block;

	for (unsigned i = 0; i < ARRAY_LEN(page); i++)
		REQUIRE((page[i] = mm_page_alloc(&a->mm, 0, USE_UNMOVABLE, PAGE_NODE, 0)));
	block = ALIGN_DOWN(page_to_pfn(page[0]), BLOCK_FRAMES);
	for (unsigned i = 0; i < ARRAY_LEN(page); i++)
		mm_page_free(&a->mm, page[i]);
	EXPECT_EQ(mm_contig_declare_cma(&a->mm, block, BLOCK_FRAMES), 0);
	EXPECT_EQ(pcp_count(&a->mm, arena_zone(a, 0)), 0);
	for (unsigned i = 0; i < ARRAY_LEN(page); i++) {
		REQUIRE((page[i] = mm_page_alloc(&a->mm, 0, USE_UNMOVABLE, PAGE_NODE, 0)));
		EXPECT(ALIGN_DOWN(page_to_pfn(page[i]), BLOCK_FRAMES) != block);
	}
	EXPECT(arena_accounted(a));
	EXPECT_EQ(mm_contig_alloc_range(&a->mm, block, BLOCK_FRAMES), 0);
	mm_contig_free_range(&a->mm, block, BLOCK_FRAMES);
	for (unsigned i = 0; i < ARRAY_LEN(page); i++)
		mm_page_free(&a->mm, page[i]);
}

TEST_ARENA(mm_contig, a_declared_range_is_no_part_of_a_gigabyte_page, borrow_gigabyte())
{
	const struct hvo_mode *on = hvo_mode_find("on");
	EXPECT_EQ(
		mm_contig_declare_cma(&a->mm, block_pfn(arena_phantom_block(a) + AT), BLOCK_FRAMES),
		0);
	EXPECT_EQ(pool_grow_on(&a->giga, on, a->options.nodes, 1), 0);
	EXPECT(!mm_page_alloc(&a->mm, GIGA_ORDER, USE_UNMOVABLE, PAGE_NODE, a->options.nodes));
	EXPECT_EQ(listed(arena_phantom_zone(a), MIGRATE_CMA), BLOCK_FRAMES);
	EXPECT(arena_accounted(a));
	EXPECT_EQ(migratetype_set(&a->mm, arena_phantom_block(a) + AT, 1, MIGRATE_MOVABLE), 0);
	EXPECT_EQ(pool_grow_on(&a->giga, on, a->options.nodes, 1), 1);
	EXPECT(arena_accounted(a));
	EXPECT_EQ(pool_shrink(&a->giga, on, 1), 1);
}

/* ---- waiting ---- */

static void publish_slowly(void *arg)
{
	struct arena *a = arg;
	struct block_list list = BLOCK_LIST_INIT;

	block_list_push(&a->mm, &list, arena_phantom_block(a) + AT);
	clock_delay_ns(A_MOMENT);
	block_list_publish_free(&a->mm, &list);
}

/*
 * A pool page in the range is on its way back to the buddy. Restoring it takes longer than five
 * passes over the range.
 */
TEST_ARENA(mm_contig, what_is_in_transit_in_the_range_is_waited_for,
	   cpus_needed(2) ? borrow_gigabyte() : NULL)
{
	struct migrate_stats stats = {0};
	const cpu_t other = cpus_find_other();
	struct zone *zone = arena_phantom_zone(a);
	const u32 index = arena_phantom_block(a) + AT;
	struct isolation token;

	EXPECT_EQ(isolate_range(zone, index, 4, &token), 0);
	spin_lock(&zone->lock); /* a page that is being given back is off its list and in transit */
	buddy_unlink_within(zone, buddy_find_run(&a->mm, index), index, index + 1);
	block_begin(zone, index, BLOCK_ORDER, BLOCK_BARE);
	spin_unlock(&zone->lock);
	REQUIRE(work_start(other, publish_slowly, a) == 0);
	EXPECT_EQ(migrate_range(zone, index, 4, &(struct migrate_how){.giga = MIGRATE_KEEP_GIGA},
				&stats),
		  0);
	work_wait(other, 0);
	isolate_undo(zone, &token);
	EXPECT(one_free_gigabyte(zone));
}

/*
 * One GiB is free, and one is full. After the free one is taken, nothing can be moved, and the CPU
 * must not wait for the GiB that it holds itself.
 */
TEST_ARENA(mm_contig, nobody_waits_for_what_it_holds_itself,
	   arena_borrow(MIB(32), .phantom = GIB(2)))
{
	u32 full;

	test_option("contig", "index"); /* the other searches read mapped sections only */
	holder_init(&holder, &a->mm, slots, HOLDER_SLOTS);
	holder.phantom = true;
	while (holder_take(&holder, BLOCK_ORDER, a->options.nodes))
		;
	full = block_of_page(holder.page[0]) / GIB_BLOCKS * GIB_BLOCKS;
	for (u64 slot = 0; slot < holder.slots; slot++)
		if ((page_to_pfn(holder.page[slot]) >> BLOCK_ORDER) - full >= GIB_BLOCKS)
			holder_give(&holder, slot);
	/* The other node has no free memory, either. */
	while (mm_page_alloc(&a->mm, BLOCK_ORDER, USE_UNMOVABLE, PAGE_NODE, 0))
		;
	pcp_drain_all(&a->mm);
	said_begin();
	EXPECT_EQ(pool_grow_on(&a->giga, hvo_mode_find("on"), a->options.nodes, 2), 1);
	said_end();
	EXPECT(!said_says("waiting for memory that other CPUs are changing"));
	EXPECT_EQ(a->mm.transit_kept, 0);
	EXPECT_EQ(pool_shrink(&a->giga, hvo_mode_find("on"), 1), 1);
	holder_give_all(&holder);
}
