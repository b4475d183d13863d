/*
 * The buddy for whole blocks, orders 9 to 18: splitting, merging, and where merging stops. Phantom
 * memory is enough, because the buddy needs nothing but block records.
 */
#include "mm/zone/buddy.h"

#include "kernel/core/call.h"
#include "kernel/core/percpu.h"
#include "kernel/run/test.h"
#include "mm/memmap/memmap.h"
#include "mm/zone/buddy_huge.h"
#include "mm/zone/migratetype.h"
#include "mm/zone/transit.h"
#include "tests/kernel/listed.h"
#include "tests/kernel/max_order.h"

/* The number of free runs of one order and class in a zone, of any type. */
static u64 runs_of(struct zone *zone, enum free_class class, unsigned order)
{
	u64 runs = 0;

	for (unsigned type = 0; type < MIGRATE_TYPES; type++)
		runs += buddy_count_runs(zone, class, type, order);
	return runs;
}

static u32 take(struct zone *zone, unsigned order)
{
	u32 index;

	spin_lock(&zone->lock);
	index = buddy_take_blocks(zone, order, FREE_BARE, MIGRATE_MOVABLE);
	spin_unlock(&zone->lock);
	return index;
}

static void give(struct zone *zone, u32 index, unsigned order)
{
	spin_lock(&zone->lock);
	buddy_free_blocks(zone, index, order, FREE_BARE);
	spin_unlock(&zone->lock);
}

/* Borrow two gigabytes, all open and all free. */
static struct arena *borrow_two_gigabytes(void)
{
	struct arena *a = arena_borrow(MIB(2), .phantom = GIB(2));

	if (a)
		arena_open_all(a);
	return a;
}

TEST(mm_buddy, opened_sections_merge_into_gigabytes)
{
	struct arena *a = borrow_two_gigabytes();

	if (!a)
		return;
	EXPECT_EQ(runs_of(arena_phantom_zone(a), FREE_BARE, GIGA_ORDER), 2);
	EXPECT_EQ(arena_phantom_zone(a)->free_class[FREE_BARE], 2 * order_pages(GIGA_ORDER));
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_buddy, a_split_leaves_one_run_of_every_order_below)
{
	struct arena *a = borrow_two_gigabytes();
	struct zone *zone;
	u32 index;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	for (unsigned order = BLOCK_ORDER; order <= GIGA_ORDER; order++) {
		index = take(zone, order);
		REQUIRE(index != BLOCK_NONE);
		EXPECT(IS_ALIGNED(index, 1u << (order - BLOCK_ORDER)));
		EXPECT_EQ(runs_of(zone, FREE_BARE, GIGA_ORDER), 1);
		for (unsigned below = BLOCK_ORDER; below < GIGA_ORDER; below++)
			EXPECT_EQ(runs_of(zone, FREE_BARE, below), below >= order);
		EXPECT_EQ(zone->free_class[FREE_BARE],
			  2 * order_pages(GIGA_ORDER) - order_pages(order));
		give(zone, index, order);
		EXPECT_EQ(runs_of(zone, FREE_BARE, GIGA_ORDER), 2);
	}
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_buddy, blocks_freed_in_any_order_merge_again)
{
	struct arena *a = borrow_two_gigabytes();
	static u32 taken[GIB_BLOCKS];
	struct zone *zone;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	for (unsigned i = 0; i < GIB_BLOCKS; i++)
		taken[i] = take(zone, BLOCK_ORDER);
	EXPECT_EQ(runs_of(zone, FREE_BARE, GIGA_ORDER), 1);
	for (unsigned i = 0; i < GIB_BLOCKS; i++)
		give(zone, taken[i * 37 % GIB_BLOCKS], BLOCK_ORDER);
	EXPECT_EQ(runs_of(zone, FREE_BARE, GIGA_ORDER), 2);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_buddy, merging_stops_at_another_type)
{
	struct arena *a = borrow_two_gigabytes();
	struct zone *zone;
	u32 index;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	index = take(zone, BLOCK_ORDER);
	retype(zone, index, MIGRATE_UNMOVABLE);
	give(zone, index, BLOCK_ORDER);
	EXPECT_EQ(runs_of(zone, FREE_BARE, GIGA_ORDER), 1);
	EXPECT_EQ(zone->block_list[FREE_BARE][MIGRATE_UNMOVABLE][0], index);
	EXPECT(arena_accounted(a));
	buddy_set_max_order(&a->mm, BLOCK_ORDER); /* raising must not merge them, either */
	buddy_set_max_order(&a->mm, GIGA_ORDER);
	EXPECT_EQ(runs_of(zone, FREE_BARE, GIGA_ORDER), 1);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_buddy, merging_stops_at_an_isolated_block)
{
	struct arena *a = borrow_two_gigabytes();
	struct isolation token;
	struct zone *zone;
	u32 index;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	index = take(zone, BLOCK_ORDER);
	EXPECT_EQ(isolate_block(zone, index, &token), 0);
	give(zone, index, BLOCK_ORDER);
	EXPECT_EQ(runs_of(zone, FREE_BARE, GIGA_ORDER), 1);
	EXPECT_EQ(block_look_at(&a->mm, index).order, BLOCK_ORDER);
	arena_return(a);
}

TEST(mm_buddy, merging_stops_at_another_class)
{
	struct arena *a = borrow_two_gigabytes();
	struct zone *zone;
	u32 huge, bare;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	EXPECT_EQ(pool_grow(&a->pool, hvo_mode_find("on"), 1), 1);
	huge = a->pool.node[1].free.head;
	EXPECT_EQ(pool_shrink(&a->pool, hvo_mode_find("on"), 1), 1);
	bare = take(zone, BLOCK_ORDER);
	EXPECT_EQ(bare, huge ^ 1); /* its buddy */
	give(zone, bare, BLOCK_ORDER);
	EXPECT_EQ(runs_of(zone, FREE_HUGE, BLOCK_ORDER), 1);
	EXPECT_EQ(runs_of(zone, FREE_BARE, BLOCK_ORDER), 1);
	EXPECT_EQ(runs_of(zone, FREE_BARE, GIGA_ORDER), 1);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_buddy, huge_blocks_never_merge)
{
	struct arena *a = borrow_two_gigabytes();
	struct zone *zone;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	EXPECT_EQ(pool_grow(&a->pool, hvo_mode_find("on"), 8), 8);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_mode_find("on"), 8), 8);
	EXPECT_EQ(runs_of(zone, FREE_HUGE, BLOCK_ORDER), 8);
	buddy_set_max_order(&a->mm, BLOCK_ORDER);
	buddy_set_max_order(&a->mm, GIGA_ORDER);
	EXPECT_EQ(runs_of(zone, FREE_HUGE, BLOCK_ORDER), 8);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

struct places {
	struct zone *zone;
	u32 base, seen; /* bit k: a CPU got a page of GiB base + k */
};

static void take_huge_and_give(void *arg)
{
	struct places *places = arg;
	struct zone *zone = places->zone;
	u32 index;

	spin_lock(&zone->lock);
	index = buddy_take_blocks(zone, BLOCK_ORDER, FREE_HUGE, MIGRATE_MOVABLE);
	if (index != BLOCK_NONE) {
		places->seen |= 1u << (index / GIB_BLOCKS - places->base);
		buddy_free_blocks(zone, index, BLOCK_ORDER, FREE_HUGE);
	}
	spin_unlock(&zone->lock);
}

TEST(mm_buddy, huge_pages_are_listed_by_place_and_cpus_begin_at_their_own)
{
	struct arena *a = arena_borrow(MIB(16), .phantom = GIB(2));
	const struct hvo_mode *on = hvo_mode_find("on");
	struct places places = {0};
	const u32 *list;
	cpu_t cpu, asked = 0;

	if (!a)
		return;
	arena_open_all(a);
	places.zone = arena_phantom_zone(a);
	places.base = arena_phantom_block(a) / GIB_BLOCKS;
	list = places.zone->block_list[FREE_HUGE][MIGRATE_MOVABLE];
	EXPECT_EQ(pool_grow_on(&a->pool, on, 1, 2 * GIB_BLOCKS), 2 * GIB_BLOCKS);
	EXPECT_EQ(pool_shrink_on(&a->pool, on, 1, 2 * GIB_BLOCKS), 2 * GIB_BLOCKS);
	for (unsigned gib = 0; gib < 2; gib++)
		EXPECT_EQ(list[(places.base + gib) % HUGE_PLACES] / GIB_BLOCKS, places.base + gib);
	EXPECT_EQ(runs_of(places.zone, FREE_HUGE, BLOCK_ORDER), 2 * GIB_BLOCKS);
	cpumask_foreach(cpu, &cpus_online) {
		if (cpu >= HUGE_PLACES || cpu == cpu_id() ||
		    work_start(cpu, take_huge_and_give, &places) < 0)
			continue;
		work_wait(cpu, 0);
		asked++;
	}
	take_huge_and_give(&places);
	if (asked == HUGE_PLACES - 1)
		/* A CPU whose place belongs to the second GiB does not ask the first one. */
		EXPECT_EQ(places.seen, 3);
	else
		EXPECT(places.seen != 0);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/*
 * The types change while the pages are on no list of the zone, as a CPU's own pages may be. Each
 * page must go to the list of its new type.
 */
TEST(mm_buddy, many_huge_pages_come_and_go_at_once_by_type_and_place)
{
	enum { MANY = 24 };
	struct arena *a = borrow_two_gigabytes();
	u32 pages[MANY + 1];
	struct zone *zone;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	EXPECT_EQ(pool_grow(&a->pool, hvo_mode_find("on"), MANY), MANY);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_mode_find("on"), MANY), MANY);
	spin_lock(&zone->lock);
	EXPECT_EQ(buddy_take_huge(zone, BLOCK_ORDER, MIGRATE_MOVABLE, pages, MANY - 1), MANY - 1);
	EXPECT_EQ(buddy_take_huge(zone, BLOCK_ORDER, MIGRATE_MOVABLE, pages + MANY - 1, 2), 1);
	EXPECT_EQ(buddy_take_huge(zone, BLOCK_ORDER, MIGRATE_MOVABLE, pages, 1), 0);
	EXPECT_EQ(zone->free_class[FREE_HUGE], 0);
	for (unsigned i = 1; i < MANY; i += 2)
		migratetype_set_one(zone, pages[i], MIGRATE_UNMOVABLE);
	buddy_free_huge(zone, pages, MANY);
	spin_unlock(&zone->lock);
	EXPECT_EQ(buddy_count_runs(zone, FREE_HUGE, MIGRATE_MOVABLE, BLOCK_ORDER), MANY / 2);
	EXPECT_EQ(buddy_count_runs(zone, FREE_HUGE, MIGRATE_UNMOVABLE, BLOCK_ORDER), MANY / 2);
	EXPECT_EQ(zone->free_class[FREE_HUGE], MANY * BLOCK_FRAMES);
	for (unsigned i = 1; i < MANY; i += 2)
		migratetype_set(zone->mm, pages[i], 1, MIGRATE_MOVABLE);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/*
 * Two nodes have their border in the middle of a gigabyte. Buddies on both sides of it stay apart.
 */
TEST(mm_buddy, merging_stops_at_a_zone_border)
{
	struct arena *a = arena_borrow(MIB(2), .phantom = GIB(1), .phantom_nodes = 2);
	struct zone *low, *high;

	if (!a)
		return;
	arena_open_all(a);
	low = arena_zone(a, 1);
	high = arena_zone(a, 2);
	EXPECT_EQ(runs_of(low, FREE_BARE, GIGA_ORDER - 1), 1);
	EXPECT_EQ(runs_of(high, FREE_BARE, GIGA_ORDER - 1), 1);
	EXPECT_EQ(low->free_class[FREE_BARE], high->free_class[FREE_BARE]);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_buddy, a_border_off_the_section_grid_is_respected)
{
	struct arena *a = arena_borrow(MIB(2), .phantom = GIB(1), .phantom_nodes = 2,
				       .phantom_skew = MIB(2) + KIB(4));
	const u64 half = order_pages(GIGA_ORDER - 1);

	if (!a)
		return;
	arena_open_all(a);
	EXPECT_EQ(arena_zone(a, 1)->free_class[FREE_BARE], half + BLOCK_FRAMES);
	EXPECT_EQ(arena_zone(a, 2)->free_class[FREE_BARE], half - 2 * BLOCK_FRAMES);
	EXPECT_EQ(block_look_at(&a->mm, arena_phantom_block(a) + GIB_BLOCKS / 2 + 1).state,
		  BLOCK_RESERVED);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_buddy, max_order_lowered_splits_and_raised_merges)
{
	struct arena *a = borrow_two_gigabytes();
	struct zone *zone;
	u32 index;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	buddy_set_max_order(&a->mm, 10);
	EXPECT_EQ(runs_of(zone, FREE_BARE, 10), 2 * order_pages(GIGA_ORDER - 10));
	EXPECT_EQ(runs_of(zone, FREE_BARE, 11), 0);
	EXPECT_EQ(take(zone, 11), BLOCK_NONE);
	index = take(zone, BLOCK_ORDER);
	give(zone, index, BLOCK_ORDER);
	/* Merging stops at max_order. */
	EXPECT_EQ(runs_of(zone, FREE_BARE, 10), 2 * order_pages(GIGA_ORDER - 10));
	EXPECT(arena_accounted(a));
	buddy_set_max_order(&a->mm, 14);
	EXPECT_EQ(runs_of(zone, FREE_BARE, 14), 2 * order_pages(GIGA_ORDER - 14));
	buddy_set_max_order(&a->mm, GIGA_ORDER);
	EXPECT_EQ(runs_of(zone, FREE_BARE, GIGA_ORDER), 2);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_buddy, a_block_finds_the_run_it_lies_in)
{
	struct arena *a = borrow_two_gigabytes();
	struct zone *zone;
	u32 index;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	EXPECT_EQ(buddy_find_run(&a->mm, arena_phantom_block(a) + 511), arena_phantom_block(a));
	EXPECT_EQ(buddy_find_run(&a->mm, arena_phantom_block(a) + 512),
		  arena_phantom_block(a) + 512);
	index = take(zone, BLOCK_ORDER);
	EXPECT_EQ(buddy_find_run(&a->mm, index), BLOCK_NONE);
	EXPECT_EQ(buddy_find_run(&a->mm, index + 1), index + 1);
	EXPECT_EQ(buddy_find_run(&a->mm, index + 3), index + 2);
	EXPECT_EQ(buddy_find_run(&a->mm, index + 300), index + 256);
	give(zone, index, BLOCK_ORDER);
	EXPECT_EQ(buddy_find_run(&a->mm, arena_block(a)), BLOCK_NONE); /* Metadata memory */
	arena_return(a);
}
