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
TEST_ARENA(mm_transit, a_piece_that_is_isolated_keeps_the_page_from_being_made, borrow_gigabyte())
{
	struct block_list pieces = BLOCK_LIST_INIT;
	struct isolation token;
	struct zone *zone = arena_phantom_zone(a);
	const u32 first = arena_phantom_block(a);

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
	EXPECT(one_free_gigabyte(zone));
}

/* ---- with other CPUs at work ---- */

struct builders {
	struct arena *a;
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
		b->made += pool_grow_on(&b->a->giga, on, b->a->options.nodes, 1) == 1;
		pool_shrink(&b->a->giga, on, 1);
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

TEST_ARENA(mm_transit, pages_are_built_where_others_isolate_blocks, borrow_gigabyte())
{
	struct builders b = {.a = a, .building = 1};

	cpus_run_together(build_or_isolate, &b);
	EXPECT(b.made <= BUILDS);
	EXPECT_EQ(a->giga.pages, 0);
	EXPECT_EQ(listed(arena_phantom_zone(a), MIGRATE_ISOLATE), 0);
	EXPECT_EQ(pool_grow_on(&a->giga, hvo_mode_find("on"), a->options.nodes, 1), 1);
	EXPECT_EQ(pool_shrink(&a->giga, hvo_mode_find("on"), 1), 1);
	hvo_bare_free_huge(arena_phantom_zone(a), ~0ULL);
	EXPECT(one_free_gigabyte(arena_phantom_zone(a)));
}
