/*
 * Runs in transit: 512 pieces become one run, and one run becomes 512 pieces, while other CPUs
 * isolate some of the pieces. Phantom memory is enough.
 */
#include "mm/zone/transit.h"

#include <arch/clock.h>

#include "kernel/run/test.h"
#include "mm/contig/contig.h"
#include "mm/hvo/hvo_make.h"
#include "mm/hvo/hvo_unshare.h"
#include "mm/page/pcp.h"
#include "mm/zone/buddy.h"
#include "mm/zone/isolate.h"
#include "mm/zone/migratetype.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/listed.h"
#include "tests/kernel/pool_check.h"
#include "tests/kernel/max_order.h"
#include "tests/kernel/modes.h"

enum { PIECE = 5, BUILDS = 2 };

/* Take the arena's gigabyte as pieces in transit. */
static bool take_pieces(struct arena *a, struct block_list *pieces)
{
	struct contig_stats stats = {0};
	const int err =
		contig_take(arena_phantom_zone(a), arena_phantom_block(a), GIB_BLOCKS,
			    &(struct migrate_how){.giga = MIGRATE_KEEP_GIGA}, pieces, &stats);

	EXPECT_EQ(err, 0);
	EXPECT_EQ(pieces->count, GIB_BLOCKS);
	return err == 0;
}

/* Expect that the gigabyte is as it was, and return the arena. */
static void return_whole(struct arena *a)
{
	EXPECT(one_free_gigabyte(arena_phantom_zone(a)));
	EXPECT(arena_accounted(a));
	arena_return(a);
}

static void expect_pieces(struct arena *a)
{
	for (u32 i = arena_phantom_block(a); i < arena_phantom_block(a) + GIB_BLOCKS; i++) {
		const struct block_word word = block_look_at(&a->mm, i);

		if (word.order != BLOCK_ORDER || !(word.flags & BLOCK_TRANSIT) ||
		    word.state != BLOCK_BARE)
			test_fail(__FILE__, __LINE__, "block %u is no bare piece in transit", i);
	}
}

static void change_type(struct zone *zone, u32 index, u8 clear, u8 set)
{
	spin_lock(&zone->lock);
	EXPECT_EQ(migratetype_change(zone, index, index + 1, clear, set), 1);
	spin_unlock(&zone->lock);
}

/*
 * Another CPU may isolate a piece, or declare it CMA, at any time between taking the pieces and
 * joining them.
 */
TEST(mm_transit, a_piece_that_is_isolated_keeps_the_page_from_being_made)
{
	struct arena *a = borrow_gigabyte();
	struct block_list pieces = BLOCK_LIST_INIT;
	struct isolation token;
	struct zone *zone;
	u32 first;

	if (!a)
		return;
	zone = arena_phantom_zone(a);
	first = arena_phantom_block(a);
	if (take_pieces(a, &pieces)) {
		EXPECT_EQ(isolate_block(zone, first + PIECE, &token), 0);
		EXPECT_EQ(hvo_gather(&a->mm, first), (u64)-EBUSY);
		expect_pieces(a);
		isolate_undo(zone, &token);
		change_type(zone, first + PIECE, BLOCK_TYPE_MASK, MIGRATE_CMA);
		EXPECT_EQ(hvo_gather(&a->mm, first), (u64)-EBUSY);
		expect_pieces(a);
		change_type(zone, first + PIECE, BLOCK_TYPE_MASK, MIGRATE_MOVABLE);
		EXPECT_EQ(isolate_block(zone, first + PIECE, &token), 0);
	}
	block_list_publish_free(&a->mm, &pieces);
	/* The piece was published with its new type. */
	EXPECT_EQ(listed(zone, MIGRATE_ISOLATE), BLOCK_FRAMES);
	EXPECT(arena_accounted(a));
	isolate_undo(zone, &token);
	return_whole(a);
}

/* ---- with other CPUs at work ---- */

struct builders {
	struct arena *a;
	struct pool giga;
	u32 roles, building, made, isolated;
};

/*
 * One CPU makes a 1 GiB page of scattered blocks and takes it apart. The other CPUs isolate one of
 * its blocks now and then.
 */
static void build_or_isolate(void *arg)
{
	struct builders *b = arg;
	const struct hvo_mode *on = hvo_mode_find("on");
	struct zone *zone = arena_phantom_zone(b->a);
	const u32 role = atomic_fetch_add(&b->roles, 1),
		  index = arena_phantom_block(b->a) + PIECE * (role + 1);

	for (unsigned round = 0; role == 0 && round < BUILDS; round++) {
		b->made += pool_grow_on(&b->giga, on, b->a->options.nodes, 1) == 1;
		pool_shrink(&b->giga, on, 1);
		hvo_bare_free_huge(zone, ~0ULL);
	}
	if (role == 0)
		atomic_store_release(&b->building, 0);
	while (role > 0 && atomic_load_acquire(&b->building)) {
		struct isolation token;

		if (isolate_range(zone, index, 1, &token) == 0) {
			atomic_fetch_add(&b->isolated, 1);
			isolate_undo(zone, &token);
		}
		clock_delay_ns(100 * 1000); /* the builder needs the lock, too */
	}
}

TEST(mm_transit, pages_are_built_where_others_isolate_blocks)
{
	static struct pool_node nodes[ARENA_NODES_MAX * 2];
	struct builders b = {.a = borrow_gigabyte(), .building = 1};

	if (!b.a)
		return;
	pool_init(&b.giga, &b.a->mm, GIGA_ORDER, nodes);
	cpus_run_together(build_or_isolate, &b);
	EXPECT(b.made <= BUILDS);
	EXPECT_EQ(b.giga.pages, 0);
	EXPECT_EQ(listed(arena_phantom_zone(b.a), MIGRATE_ISOLATE), 0);
	EXPECT_EQ(pool_grow_on(&b.giga, hvo_mode_find("on"), b.a->options.nodes, 1), 1);
	EXPECT_EQ(pool_shrink(&b.giga, hvo_mode_find("on"), 1), 1);
	hvo_bare_free_huge(arena_phantom_zone(b.a), ~0ULL);
	EXPECT(one_free_gigabyte(arena_phantom_zone(b.a)));
	EXPECT(arena_accounted_with(b.a, &b.giga));
	arena_return(b.a);
}
