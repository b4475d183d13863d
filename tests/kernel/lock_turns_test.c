/*
 * Turns at the locks of zones and pools. However many blocks a call handles, no turn handles more
 * records than a slice has (LOCK_SLICE, mm/memmap/zone.h), so a larger call does not make other
 * CPUs wait longer. The cases count the turns by the tickets that were drawn: a pass over so many
 * records has at least one turn for each slice of them.
 */
#include "tests/kernel/huge_records.h"
#include "tests/kernel/mm_test.h"

enum { PAGES = 16 * GIB_BLOCKS, RUNS_GIB = 4 };

/* Turns at the lock since the last call with the same `seen`. */
static u32 turns_at(const struct spinlock *lock, u16 *seen)
{
	const u16 next = atomic_load_relaxed(&lock->next), turns = (u16)(next - *seen);

	*seen = next;
	return turns;
}

/* `passes` over so many records had a turn for each slice of them. */
static void expect_slices(const char *what, u32 turns, u32 passes, u64 records)
{
	if (turns < passes * DIV_ROUND_UP(records, LOCK_SLICE))
		test_fail(__FILE__, __LINE__, "%s: %u turns for %u passes over %llu records", what,
			  turns, passes, records);
}

TEST_ARENA(mm_turns, none_handles_more_than_a_slice_however_many_pages_come_and_go,
	   huge_records_borrow(PAGES))
{
	const struct hvo_mode *on = hvo_mode_find("on");
	const struct spinlock *zone = &arena_phantom_zone(a)->lock, *pool = &a->pool.lock;
	u16 at_zone = 0, at_pool = 0;

	turns_at(zone, &at_zone);
	turns_at(pool, &at_pool);
	EXPECT_EQ(pool_grow_on(&a->pool, on, 1, PAGES), PAGES);
	expect_slices("growing, taken and published", turns_at(zone, &at_zone), 2, PAGES);
	expect_slices("growing", turns_at(pool, &at_pool), 1, PAGES);
	EXPECT_EQ(a->pool.free, PAGES);
	EXPECT_EQ(a->pool.node[1].free.count, PAGES);
	EXPECT_EQ(pool_shrink_on(&a->pool, on, 1, PAGES), PAGES);
	expect_slices("shrinking", turns_at(zone, &at_zone), 1, PAGES);
	expect_slices("shrinking", turns_at(pool, &at_pool), 1, PAGES);
	EXPECT_EQ(a->pool.free, 0);
	huge_records_return(a);
}

/*
 * Node 0 has no pages, so the other nodes give its share as well. Each node gives what it would
 * give in one turn, and promised pages stay.
 */
TEST_ARENA(mm_turns, nodes_give_their_shares_in_slices_and_promises_are_kept,
	   arena_borrow(MIB(32), .phantom = GIB(4), .phantom_nodes = 2))
{
	enum { PROMISED = 5, OF_EACH = 4 * LOCK_SLICE };
	const struct hvo_mode *on = hvo_mode_find("on");

	for (node_t node = 1; node <= 2; node++)
		REQUIRE(pool_grow_on(&a->pool, on, node, OF_EACH) == OF_EACH);
	EXPECT_EQ(pool_reserve(&a->pool, PROMISED), 0);
	EXPECT_EQ(pool_shrink(&a->pool, on, 3 * LOCK_SLICE - 3), 3 * LOCK_SLICE - 3);
	/* Node 0 has none, and the other nodes share what it lacks. */
	EXPECT_EQ(a->pool.node[1].free.count, OF_EACH - 3 * (LOCK_SLICE / 2));
	EXPECT_EQ(a->pool.node[2].free.count, OF_EACH - 3 * (LOCK_SLICE / 2 - 1));
	EXPECT_EQ(pool_shrink(&a->pool, on, ~0ULL), 2 * OF_EACH - (3 * LOCK_SLICE - 3) - PROMISED);
	EXPECT(account_pool(&a->pool));
	pool_unreserve(&a->pool, PROMISED);
	EXPECT_EQ(pool_shrink(&a->pool, on, ~0ULL), PROMISED);
}

/* The range begins and ends inside free runs of a gigabyte and has more blocks than a slice. */
TEST_ARENA(mm_turns, a_range_is_looked_at_and_taken_slice_by_slice,
	   arena_borrow(MIB(16), .phantom = GIB(4)))
{
	enum { OFF = 100, COUNT = 4 * GIB_BLOCKS - 2 * OFF };
	enum { RANGE_PASSES = 3 }; /* and looks at runs, which may be longer than a slice */
	const struct migrate_how how = {.giga = MIGRATE_KEEP_GIGA};
	struct block_list list = BLOCK_LIST_INIT;
	struct contig_stats stats = {0};
	u16 seen = 0;
	struct zone *zone = arena_phantom_zone(a);

	arena_open_all(a);
	turns_at(&zone->lock, &seen);
	EXPECT_EQ(contig_take(zone, arena_phantom_block(a) + OFF, COUNT, &how, &list, &stats), 0);
	expect_slices("taking a range", turns_at(&zone->lock, &seen), RANGE_PASSES, COUNT);
	EXPECT_EQ(list.count, COUNT);
	EXPECT_EQ(list.head, arena_phantom_block(a) + OFF);
	EXPECT(!zone->isolations);
	block_list_publish_free(&a->mm, &list);
	EXPECT_EQ(buddy_count_runs(zone, FREE_BARE, MIGRATE_MOVABLE, GIGA_ORDER), 4);
}
