/*
 * Isolation: isolated memory is not given out, and ending an isolation, whole or after a failure,
 * leaves everything as it was. Phantom memory is enough, because nothing is written to it.
 */
#include "tests/kernel/mm_test.h"

enum { FAULTS_MAX = 1000 };

TEST_ARENA(mm_isolate, what_is_isolated_is_not_given_out_and_comes_back_whole, borrow_gigabyte())
{
	struct block_list list = BLOCK_LIST_INIT;
	struct isolation token;
	struct zone *zone = arena_phantom_zone(a);
	const u32 first = arena_phantom_block(a) + AT;

	EXPECT_EQ(isolate_range(zone, first, RANGE, &token), 0);
	EXPECT_EQ(listed(zone, MIGRATE_ISOLATE), (u64)RANGE * BLOCK_FRAMES);
	EXPECT(arena_accounted(a));
	EXPECT(isolate_test(zone, first, RANGE));
	EXPECT_EQ(block_take(zone, FREE_BARE, BLOCK_ORDER, ~0ULL, BLOCK_HUGE, &list),
		  GIB_BLOCKS - RANGE);
	block_list_foreach(&a->mm, i, &list)
		if (i >= first && i < first + RANGE)
			test_fail(__FILE__, __LINE__,
				  "block %u was given out while it was isolated", i);
	block_list_publish_free(&a->mm, &list);
	isolate_undo(zone, &token);
	EXPECT_EQ(listed(zone, MIGRATE_ISOLATE), 0);
	EXPECT(one_free_gigabyte(zone));
}

TEST_ARENA(mm_isolate, two_isolations_do_not_overlap, borrow_gigabyte())
{
	struct isolation token, other;
	struct zone *zone = arena_phantom_zone(a);
	const u32 first = arena_phantom_block(a) + AT;

	EXPECT_EQ(isolate_range(zone, first, RANGE, &token), 0);
	EXPECT_EQ(isolate_range(zone, first - AT, RANGE, &other), -EBUSY);
	/* The first isolation is unchanged. */
	EXPECT_EQ(listed(zone, MIGRATE_ISOLATE), (u64)RANGE * BLOCK_FRAMES);
	EXPECT(arena_accounted(a));
	/* Neighbouring ranges may have different isolations. */
	EXPECT_EQ(isolate_range(zone, first + RANGE, 8, &other), 0);
	isolate_undo(zone, &token);
	EXPECT_EQ(listed(zone, MIGRATE_ISOLATE), 8 * BLOCK_FRAMES);
	isolate_undo(zone, &other);
	EXPECT(one_free_gigabyte(zone));
}

TEST_ARENA(mm_isolate, a_page_in_use_behind_one_that_a_cpu_holds_is_in_the_way, borrow_gigabyte())
{
	const pfn_t first = block_pfn(arena_phantom_block(a) + AT);
	struct isolation token;

	EXPECT_EQ(mm_contig_alloc_range(&a->mm, first, BLOCK_FRAMES), 0);
	for (u64 i = BLOCK_FRAMES; i-- > 0;)
		if (i != 1)
			mm_page_free(&a->mm, pfn_page(&a->mm, first + i));
	EXPECT_EQ(isolate_range(arena_phantom_zone(a), arena_phantom_block(a) + AT, 1, &token),
		  -EBUSY);
	mm_page_free(&a->mm, pfn_page(&a->mm, first + 1));
}

/* A digest of all records of a GiB: state, type, isolation, and how the runs are cut. */
static u64 records_digest(struct arena *a, u32 first)
{
	u64 digest = 0;

	for (u32 i = first; i < first + GIB_BLOCKS; i++) {
		const struct block_word word = block_look_at(&a->mm, i);

		digest = (digest ^ (word.state | (u64)word.type << 8 | (u64)word.flags << 16 |
				    (u64)word.order << 24)) *
			 0x100000001b3ULL;
	}
	return digest;
}

/*
 * Isolate once with one failure. Whether or not it succeeds, everything must be as before. Returns
 * true if the failure was met.
 */
static bool isolate_with_fault(struct arena *a, u32 first, u32 fault, u64 digest)
{
	struct isolation token;
	struct zone *zone = arena_phantom_zone(a);
	bool met;
	int err;

	fail_arm(&a->mm.fail, FAIL_ANY, fault, FAIL_ONCE);
	err = isolate_range(zone, first, GIB_BLOCKS, &token);
	met = fail_disarm(&a->mm.fail);
	EXPECT(err == 0 || met);
	if (err == 0) {
		EXPECT_EQ(listed(zone, MIGRATE_ISOLATE), order_pages(GIGA_ORDER));
		isolate_undo(zone, &token);
	}
	EXPECT_EQ(listed(zone, MIGRATE_ISOLATE), 0);
	EXPECT_EQ(records_digest(a, first), digest);
	EXPECT(arena_accounted(a));
	return met;
}

/*
 * Every step of isolating fails once. Afterwards everything is as before, so one arena is enough.
 */
TEST_ARENA(mm_isolate, every_failure_point_rolls_back, borrow_gigabyte())
{
	u32 first, fault = 1;
	u64 digest;

	first = arena_phantom_block(a);
	/* Runs of many sizes make many steps. */
	for (u32 i = 1; i < GIB_BLOCKS; i += 24)
		EXPECT_EQ(migratetype_set(&a->mm, first + i, 1 + i % 3, MIGRATE_UNMOVABLE), 0);
	digest = records_digest(a, first);
	while (fault < FAULTS_MAX && isolate_with_fault(a, first, fault, digest) && !test_failed())
		fault++;
	EXPECT(fault - 1 > 40 && fault < FAULTS_MAX);
	EXPECT_EQ(migratetype_set(&a->mm, first, GIB_BLOCKS, MIGRATE_MOVABLE), 0);
	EXPECT(one_free_gigabyte(arena_phantom_zone(a)));
}

/* If such a section was opened again, the isolated blocks would get a new type. */
TEST_ARENA(mm_isolate, a_section_that_is_isolated_in_part_is_not_closed, borrow_gigabyte())
{
	struct isolation token;
	u64 section, digest;
	struct zone *zone = arena_phantom_zone(a);
	const u32 first = arena_phantom_block(a);

	section = first / SECTION_BLOCKS;
	/* The range reaches into the next section. */
	EXPECT_EQ(isolate_range(zone, first + SECTION_BLOCKS - 1, 2, &token), 0);
	digest = records_digest(a, first);
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_EQ(section_close(&a->mm, section + i), -EBUSY);
		EXPECT_EQ(section_state(&a->mm, section + i), SECTION_OPEN);
	}
	EXPECT_EQ(records_digest(a, first), digest);
	EXPECT_EQ(section_close(&a->mm, section + 2), 0);
	isolate_undo(zone, &token);
	for (unsigned i = 0; i < 2; i++)
		EXPECT_EQ(section_close(&a->mm, section + i), 0);
	/* A section that is not open cannot be isolated. */
	EXPECT_EQ(isolate_range(zone, first, 2, &token), -EBUSY);
}

/* ---- with other CPUs at work ---- */

struct publisher {
	struct arena *a;
	struct block_list list;
	u32 stop;
};

/* Keep a block in transit until it is isolated, or until the test gives up. */
static void publish_when_isolated(void *arg)
{
	struct publisher *p = arg;
	const struct block *block = block_at(&p->a->mm, p->list.head);

	while (!block_word_is_isolated(block_look(block)) && !atomic_load_acquire(&p->stop))
		cpu_relax();
	block_list_publish_free(&p->a->mm, &p->list);
}

/*
 * Isolation waits for blocks in transit, except for those that are on their way to UNOPENED,
 * because they come back as different blocks. Earlier ways of a block do not count.
 */
TEST_ARENA(mm_isolate, a_block_whose_section_closes_is_not_isolated,
	   cpus_needed(2) ? borrow_gigabyte() : NULL)
{
	struct publisher p = {.a = a, .list = BLOCK_LIST_INIT};
	const cpu_t other = cpus_find_other();
	struct zone *zone = arena_phantom_zone(a);
	struct isolation token;

	EXPECT_EQ(block_take(zone, FREE_BARE, BLOCK_ORDER, GIB_BLOCKS, BLOCK_FULL, &p.list),
		  GIB_BLOCKS);
	block_list_publish_free(&a->mm, &p.list);
	EXPECT_EQ(block_take(zone, FREE_BARE, BLOCK_ORDER, 1, BLOCK_UNOPENED, &p.list), 1);
	REQUIRE(work_start(other, publish_when_isolated, &p) == 0);
	EXPECT_EQ(isolate_range(zone, p.list.head, 4, &token), -EBUSY);
	atomic_store_release(&p.stop, 1);
	work_wait(other, 0);
	EXPECT_EQ(listed(zone, MIGRATE_ISOLATE), 0);
	EXPECT(one_free_gigabyte(zone));
}

struct closer {
	struct arena *a;
	u32 first;
	bool closed, isolated;
};

static void close_or_isolate_once(void *arg)
{
	struct closer *c = arg;
	struct zone *zone = arena_phantom_zone(c->a);
	struct isolation token;

	if (cpu_id() == 0)
		c->closed = section_close(&c->a->mm, c->first / SECTION_BLOCKS) == 0;
	if (cpu_id() != 1 || isolate_range(zone, c->first, 1, &token) < 0)
		return;
	c->isolated = true;
	isolate_undo(zone, &token);
}

/* The blocks have been on their way to another state before. */
TEST_ARENA(mm_isolate, a_section_closes_or_is_isolated, arena_borrow(MIB(2), .phantom = GIB(1)))
{
	struct closer c = {.a = a, .first = arena_phantom_block(a)};
	struct block_list list = BLOCK_LIST_INIT;

	EXPECT_EQ(section_open(&a->mm, c.first / SECTION_BLOCKS, SECTION_ON_DEMAND), 0);
	EXPECT_EQ(block_take(arena_phantom_zone(a), FREE_BARE, BLOCK_ORDER, SECTION_BLOCKS,
			     BLOCK_FULL, &list),
		  SECTION_BLOCKS);
	block_list_publish_free(&a->mm, &list);
	cpus_run_together(close_or_isolate_once, &c);
	EXPECT(c.closed || c.isolated);
	EXPECT(arena_accounted(a));
}

/* Pages come and go on all CPUs while ranges are isolated and released. */
struct churn {
	struct arena *a;
	u32 isolated;
};

static void churn(void *arg)
{
	struct churn *c = arg;
	struct isolation token;
	struct zone *zone = arena_phantom_zone(c->a);
	struct page *pages[24] = {NULL};

	for (unsigned round = 0; round < 24; round++) {
		for (unsigned i = 0; i < ARRAY_LEN(pages); i++) {
			if (pages[i])
				mm_page_free(&c->a->mm, pages[i]);
			pages[i] = alloc_on_phantom(c->a, (round + i) % 10,
						    i % 2 ? USE_MOVABLE : USE_UNMOVABLE);
		}
		if (round % 6 == 0) {
			const u32 first = arena_phantom_block(c->a) + (round * 7) % 400;

			if (isolate_range(zone, first, 32, &token) == 0) {
				atomic_fetch_add(&c->isolated, 1);
				isolate_undo(zone, &token);
			}
		}
	}
	for (unsigned i = 0; i < ARRAY_LEN(pages); i++)
		if (pages[i])
			mm_page_free(&c->a->mm, pages[i]);
}

TEST_ARENA(mm_isolate, ranges_come_and_go_while_pages_do, borrow_gigabyte())
{
	struct churn c = {.a = a};

	cpus_run_together(churn, &c);
	cpus_note_met(c.isolated, "ranges isolated");
	EXPECT_EQ(listed(arena_phantom_zone(a), MIGRATE_ISOLATE), 0);
	EXPECT(arena_accounted(a));
	pcp_drain_all(&a->mm);
	EXPECT(arena_small_lists_whole(a));
}

/* ---- migratetypes ---- */

/*
 * Migratetypes: the pages on a free list always have the type of that list, and a change of type is
 * complete or not made at all. Phantom memory is enough, because nothing is written to it.
 */

/*
 * A block that is free as a huge page, and one that is bare, are declared CMA. Neither is given out
 * as a huge page, or taken for a change that does not leave it free.
 */
TEST_ARENA(mm_migratetype, cma_blocks_are_no_huge_pages, borrow_gigabyte())
{
	struct page *chain = NULL, *page = take_phantom(a, BLOCK_ORDER);
	struct zone *zone = arena_phantom_zone(a);
	u32 huge, bare;

	REQUIRE(page);
	huge = block_of_page(page);
	mm_page_free(&a->mm, page);
	pcp_drain_all(&a->mm);
	bare = arena_phantom_block(a) + GIB_BLOCKS - 1;
	REQUIRE(bare != huge);
	EXPECT_EQ(block_look_at(&a->mm, huge).state, BLOCK_HUGE);
	EXPECT_EQ(migratetype_set(&a->mm, huge, 1, MIGRATE_CMA), 0);
	EXPECT_EQ(migratetype_set(&a->mm, bare, 1, MIGRATE_CMA), 0);
	EXPECT_EQ(block_take_in(zone, bare, 1, 1u << FREE_BARE | 1u << FREE_MAPPED, BLOCK_FULL),
		  BLOCK_NONE);
	EXPECT_EQ(chain_take_all(&chain, &a->mm, BLOCK_ORDER, PAGE_NODE, a->options.nodes),
		  GIB_BLOCKS - 2);
	EXPECT_EQ(listed(zone, MIGRATE_CMA), 2 * BLOCK_FRAMES);
}

/* ---- pieces in transit ---- */

/*
 * Runs in transit: 512 pieces become one run, and one run becomes 512 pieces, while other CPUs
 * isolate some of the pieces. Phantom memory is enough.
 */

enum { PIECE = 5 };

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

/* A run was cut before the zone's lock was taken. */
TEST_ARENA(mm_transit, where_the_run_ends_earlier_one_block_is_taken, borrow_gigabyte())
{
	struct zone *zone = arena_phantom_zone(a);
	const u32 first = arena_phantom_block(a);

	spin_lock(&zone->lock);
	EXPECT_EQ(block_take_at(zone, first + 1, BLOCK_ORDER, TAKE_BARE, BLOCK_BARE), BLOCK_ORDER);
	EXPECT_EQ(block_take_at(zone, first, BLOCK_ORDER + 1, TAKE_BARE, BLOCK_BARE), BLOCK_ORDER);
	spin_unlock(&zone->lock);
	block_publish_free(zone, first, BLOCK_ORDER);
	block_publish_free(zone, first + 1, BLOCK_ORDER);
	EXPECT(one_free_gigabyte(zone));
}

/*
 * Another CPU may isolate a piece, or declare it CMA, at any time between taking the pieces and
 * joining them.
 */
TEST_ARENA(mm_transit, a_piece_that_is_isolated_keeps_the_page_from_being_made, borrow_gigabyte())
{
	struct block_list pieces = BLOCK_LIST_INIT;
	struct contig_stats stats = {0};
	struct isolation token;
	struct zone *zone = arena_phantom_zone(a);
	const u32 first = arena_phantom_block(a);

	REQUIRE(contig_take(zone, first, GIB_BLOCKS,
			    &(struct migrate_how){.giga = MIGRATE_KEEP_GIGA}, &pieces,
			    &stats) == 0);
	EXPECT_EQ(pieces.count, GIB_BLOCKS);
	EXPECT_EQ(isolate_block(zone, first + PIECE, &token), 0);
	EXPECT_EQ(hvo_gather(&a->mm, first), -EBUSY);
	expect_pieces(a);
	isolate_undo(zone, &token);
	change_type(zone, first + PIECE, BLOCK_TYPE_MASK, MIGRATE_CMA);
	EXPECT_EQ(hvo_gather(&a->mm, first), -EBUSY);
	expect_pieces(a);
	change_type(zone, first + PIECE, BLOCK_TYPE_MASK, MIGRATE_MOVABLE);
	EXPECT_EQ(isolate_block(zone, first + PIECE, &token), 0);
	block_list_publish_free(&a->mm, &pieces);
	/* The piece was published with its new type. */
	EXPECT_EQ(listed(zone, MIGRATE_ISOLATE), BLOCK_FRAMES);
	EXPECT(arena_accounted(a));
	isolate_undo(zone, &token);
	EXPECT(one_free_gigabyte(zone));
}
