/*
 * Watermarks: how much ordinary requests leave, which requests may take it, and that "net" counts
 * memory that can really be had.
 */
#include "mm/zone/watermark.h"

#include "tests/kernel/mm_test.h"

enum { RESERVE = 300 };

TEST_ARENA(mm_watermark, ordinary_requests_leave_the_reserve_to_those_who_cannot_wait,
	   arena_borrow(MIB(16)))
{
	struct page *chain = NULL;
	struct zone *zone;
	u64 ordinary, urgent, left;

	zones_set_reserve(&a->mm, RESERVE);
	zone = arena_zone(a, 0);
	ordinary = chain_take_all(&chain, &a->mm, 0, 0, 0);
	pcp_drain_all(&a->mm);
	left = zone_net(zone, 0);
	EXPECT(ordinary > 4 * BLOCK_FRAMES);
	/* The pages on the rings came back. */
	EXPECT(left >= RESERVE - 64 && left < RESERVE + 2 * BLOCK_FRAMES);
	EXPECT(zone_ready(zone) >= zone->ready);
	EXPECT(arena_accounted(a));
	urgent = chain_take_all(&chain, &a->mm, 0, PAGE_NOFLUSH, 0);
	EXPECT(urgent >= zone->ready);
	EXPECT_EQ(zone_ready(zone), 0);
}

/*
 * Take pages of each order until the next ordinary request would eat into the reserve. No order may
 * break into it.
 */
TEST_ARENA(mm_watermark, no_order_breaks_into_the_reserve, arena_borrow(MIB(16)))
{
	struct page *chain = NULL;
	struct zone *zone = arena_zone(a, 0);

	zones_set_reserve(&a->mm, RESERVE);
	for (unsigned order = BLOCK_ORDER + 1; order-- > 0;) {
		chain_take_all(&chain, &a->mm, order, 0, 0);
		EXPECT(zone_net(zone, order) < RESERVE + order_pages(order) + 2 * BLOCK_FRAMES);
		EXPECT(zone_net(zone, 0) + pcp_count(&a->mm, zone) >= RESERVE);
	}
}

/*
 * A free huge page needs no metadata memory, so it is given out as long as what is ready without it
 * is the reserve.
 */
TEST_ARENA(mm_watermark, a_free_huge_page_is_had_down_to_the_reserve, arena_borrow(MIB(16)))
{
	enum { HALVES = 6 };
	struct page *half[HALVES], *chain = NULL;
	struct zone *zone = arena_zone(a, 0);

	zones_set_reserve(&a->mm, BLOCK_FRAMES / 4);
	for (unsigned i = 0; i < HALVES; i++) {
		half[i] = mm_page_alloc(&a->mm, BLOCK_ORDER - 1, USE_MOVABLE, 0, 0);
		REQUIRE(half[i]);
	}
	for (unsigned i = 0; i < HALVES; i += 2)
		mm_page_free(&a->mm, half[i]);
	REQUIRE(chain_take_all(&chain, &a->mm, BLOCK_ORDER, 0, 0) > 0);
	mm_page_free(&a->mm, page_chain_pop(&chain));
	pcp_drain_all(&a->mm);
	zones_set_reserve(&a->mm, zone_ready(zone) + 1);
	EXPECT(!mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, 0, 0));
	zones_set_reserve(&a->mm, zone_ready(zone));
	EXPECT(!zone_admits(zone, GIGA_ORDER, 0)); /* no larger one */
	EXPECT(chain_take(&chain, &a->mm, 1, BLOCK_ORDER, 0, 1) == 1);
}

/*
 * A CPU fills its list of huge pages in one turn, and gives them out without asking the zone again.
 * It takes no more than the zone can spare.
 */
TEST_ARENA(mm_watermark, a_list_of_huge_pages_leaves_the_reserve, arena_usual())
{
	enum { PAGES = GIB_BLOCKS / 2, SPARE = 3 };
	struct page *chain = NULL;
	struct zone *zone = arena_phantom_zone(a);

	test_option("hvo", "on");
	arena_open_all(a);
	REQUIRE(chain_take(&chain, &a->mm, PAGES, BLOCK_ORDER, PAGE_NODE, 1) == PAGES);
	chain_give(&chain, &a->mm);
	pcp_drain_all(&a->mm);
	zone->reserve = zone_net(zone, 0) - SPARE * BLOCK_FRAMES;
	EXPECT(chain_take_all(&chain, &a->mm, BLOCK_ORDER, PAGE_NODE, 1) > 0);
	EXPECT(zone_net(zone, 0) >= zone->reserve);
	chain_give(&chain, &a->mm);
}

/*
 * Freed huge pages owe a round before their tails are reused. One round serves a batch of them,
 * whichever request needs it, and two CPUs may write the struct pages of a large one.
 */
TEST_ARENA(mm_watermark, huge_pages_are_made_ready_many_in_a_round, arena_usual())
{
	enum { PAGES = 2 * SPLIT_BATCH_MAX };
	struct page *chain = NULL;
	u64 before, stretches;

	test_option("hvo.threads", "2");
	zones_set_reserve(&a->mm, RESERVE);
	EXPECT_EQ(arena_phantom_zone(a)->reserve, RESERVE);
	arena_open_all(a);
	EXPECT_EQ(pool_grow_on(&a->pool, hvo_on(), 1, GIB_BLOCKS), GIB_BLOCKS);
	EXPECT_EQ(pool_shrink_on(&a->pool, hvo_on(), 1, GIB_BLOCKS), GIB_BLOCKS);
	before = rounds_so_far();
	stretches = mm_counted(&a->mm, COUNT_STRETCHES);
	REQUIRE(chain_take(&chain, &a->mm, 2 * PAGES, BLOCK_ORDER - 1, PAGE_NODE, 1) == 2 * PAGES);
	/* batches of 4, 8, ... 128 and 128; metadata memory has rounds of its own */
	EXPECT(rounds_so_far() - before <= 7 + 4);
	EXPECT_EQ(mm_counted(&a->mm, COUNT_STRETCHES) > stretches,
		  cpumask_weight(&cpus_online) > 1);
}

TEST_ARENA(mm_watermark, huge_pages_cost_a_head_and_small_ones_all_struct_pages,
	   arena_borrow(MIB(2), .phantom = GIB(1)))
{
	const u64 frames = order_pages(GIGA_ORDER), records = 4, tables = 8;
	struct zone *zone = arena_phantom_zone(a);

	EXPECT_EQ(zone->unopened, frames);
	EXPECT_EQ(zone_net(zone, 0), frames - records - tables - 8 * GIB_BLOCKS);
	EXPECT_EQ(zone_net(zone, BLOCK_ORDER), frames - records - tables - GIB_BLOCKS);
	arena_open_all(a); /* tables and records are paid for now */
	EXPECT_EQ(zone->unopened, 0);
	EXPECT_EQ(zone_net(zone, 0), frames - 8 * GIB_BLOCKS);
	EXPECT_EQ(zone_net(zone, BLOCK_ORDER), frames - GIB_BLOCKS);
}

TEST_ARENA(mm_watermark, memory_below_4_gib_is_kept_from_those_who_need_it_less,
	   arena_borrow(MIB(16)))
{
	struct zone *zone = arena_zone(a, 0);

	zone->lowmem = zone_net(zone, 0);
	EXPECT(!zone_admits(zone, 0, 0));
	EXPECT(zone_admits(zone, 0, PAGE_DMA32));
	EXPECT(zone_admits(zone, 0, PAGE_NOFLUSH));
	EXPECT(mm_page_alloc(&a->mm, 0, USE_MOVABLE, 0, 0) == NULL);
	zone->lowmem -= BLOCK_FRAMES + 1; /* a page, and metadata memory may grow by a block */
	EXPECT(zone_admits(zone, 0, 0));
}

/* ---- fallback by distance ---- */

static unsigned ring_distance(node_t from, node_t to)
{
	const node_t apart = from > to ? from - to : to - from;

	return 10 + 11 * MIN(apart, 4 - apart); /* four nodes in a ring */
}

/* The same order for ranges that are larger than a page can be. */
TEST_ARENA(mm_watermark, ranges_fall_back_to_the_nearest_node_first,
	   arena_borrow(MIB(64), .nodes = 4, .distance = ring_distance))
{
	static const node_t order[4] = {3, 0, 2, 1};
	struct page *page[16];
	unsigned count = 0, from[4] = {0};

	test_option("contig", "index"); /* the other searches read mapped sections only */
	for (unsigned i = 0; count < ARRAY_LEN(page); count++) {
		page[count] = mm_contig_alloc(&a->mm, BLOCK_ORDER + 1, 3);
		if (!page[count])
			break;
		while (i < 4 && a->mm.zone[page[count]->zone].node != order[i])
			i++;
		REQUIRE(i < 4);
		from[i]++;
	}
	for (unsigned i = 0; i < 4; i++)
		EXPECT(from[i] > 0);
	while (count-- > 0)
		mm_contig_free_range(&a->mm, page_to_pfn(page[count]), 2 * BLOCK_FRAMES);
}

/*
 * With a reserve of all that is free, no mode may give out a 2 MiB page: not one that is huge and
 * free, and not one that it would have to make.
 */
static void expect_kept_back(struct arena *a, const struct hvo_mode *mode)
{
	struct page *page = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, 0, 0);

	REQUIRE(page);
	mm_page_free(&a->mm, page);
	pcp_drain_all(&a->mm);
	zones_set_reserve(&a->mm, MIB(256) / PAGE_SIZE);
	EXPECT(!mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, 0, 0));
	zones_set_reserve(&a->mm, 0);
	page = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, 0, 0);
	REQUIRE(page);
	mm_page_free(&a->mm, page);
	EXPECT(arena_accounted(a));
}

TEST(mm_watermark, huge_pages_are_kept_back_in_every_mode)
{
	hvo_in_each_mode(MIB(256), expect_kept_back);
}
