/*
 * The buddy for whole blocks, orders 9 to 18: splitting, merging, and where merging stops. Phantom
 * memory is enough, because the buddy needs nothing but block records.
 */
#include "mm/zone/buddy_huge.h"
#include "tests/kernel/max_order.h"
#include "tests/kernel/mm_test.h"

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

TEST_ARENA(mm_buddy, blocks_freed_in_any_order_merge_again, borrow_two_gigabytes())
{
	static u32 taken[GIB_BLOCKS];
	struct zone *zone = arena_phantom_zone(a);

	for (unsigned i = 0; i < GIB_BLOCKS; i++)
		taken[i] = take(zone, BLOCK_ORDER);
	EXPECT_EQ(runs_of(zone, FREE_BARE, GIGA_ORDER), 1);
	for (unsigned i = 0; i < GIB_BLOCKS; i++)
		give(zone, taken[i * 37 % GIB_BLOCKS], BLOCK_ORDER);
	EXPECT_EQ(runs_of(zone, FREE_BARE, GIGA_ORDER), 2);
}

TEST_ARENA(mm_buddy, merging_stops_at_another_type, borrow_two_gigabytes())
{
	struct zone *zone = arena_phantom_zone(a);
	const u32 index = take(zone, BLOCK_ORDER);

	retype(zone, index, MIGRATE_UNMOVABLE);
	give(zone, index, BLOCK_ORDER);
	EXPECT_EQ(runs_of(zone, FREE_BARE, GIGA_ORDER), 1);
	EXPECT_EQ(zone->block_list[FREE_BARE][MIGRATE_UNMOVABLE][0], index);
	EXPECT(arena_accounted(a));
	buddy_set_max_order(&a->mm, BLOCK_ORDER); /* raising must not merge them, either */
	buddy_set_max_order(&a->mm, GIGA_ORDER);
	EXPECT_EQ(runs_of(zone, FREE_BARE, GIGA_ORDER), 1);
}

/*
 * The types change while the pages are on no list of the zone, as a CPU's own pages may be. Each
 * page must go to the list of its new type.
 */
TEST_ARENA(mm_buddy, many_huge_pages_come_and_go_at_once_by_type_and_place, borrow_two_gigabytes())
{
	enum { MANY = 24 };
	u32 pages[MANY + 1];
	struct zone *zone = arena_phantom_zone(a);

	EXPECT_EQ(pool_grow(&a->pool, hvo_on(), MANY), MANY);
	EXPECT_EQ(pool_shrink(&a->pool, hvo_on(), MANY), MANY);
	spin_lock(&zone->lock);
	EXPECT_EQ(buddy_take_huge(zone, BLOCK_ORDER, MIGRATE_MOVABLE, pages, MANY - 1), MANY - 1);
	EXPECT_EQ(buddy_take_huge(zone, BLOCK_ORDER, MIGRATE_MOVABLE, pages + MANY - 1, 2), 1);
	EXPECT_EQ(buddy_take_huge(zone, BLOCK_ORDER, MIGRATE_MOVABLE, pages, 1), 0);
	EXPECT_EQ(zone->free_class[FREE_HUGE], 0);
	for (unsigned i = 1; i < MANY; i += 2)
		migratetype_change(zone, pages[i], pages[i] + 1, BLOCK_TYPE_MASK,
				   MIGRATE_UNMOVABLE);
	buddy_free_huge(zone, pages, MANY);
	spin_unlock(&zone->lock);
	EXPECT_EQ(buddy_count_runs(zone, FREE_HUGE, MIGRATE_MOVABLE, BLOCK_ORDER), MANY / 2);
	EXPECT_EQ(buddy_count_runs(zone, FREE_HUGE, MIGRATE_UNMOVABLE, BLOCK_ORDER), MANY / 2);
	EXPECT_EQ(zone->free_class[FREE_HUGE], MANY * BLOCK_FRAMES);
	for (unsigned i = 1; i < MANY; i += 2)
		migratetype_set(zone->mm, pages[i], 1, MIGRATE_MOVABLE);
}
