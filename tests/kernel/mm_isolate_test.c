/*
 * Isolation: isolated memory is not given out, and ending an isolation, whole or after a failure,
 * leaves everything as it was. Phantom memory is enough, because nothing is written to it.
 */
#include "mm/zone/isolate.h"

#include "kernel/run/test.h"
#include "mm/page/pcp.h"
#include "mm/page/pcp_drain.h"
#include "mm/zone/migratetype.h"
#include "mm/zone/section.h"
#include "mm/zone/section_close.h"
#include "mm/zone/transit.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/listed.h"

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
	EXPECT_EQ(isolate_range(zone, first - AT, RANGE, &other), (u64)-EBUSY);
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

/* ---- the owner of an isolation ---- */

TEST_ARENA(mm_isolate, an_isolation_goes_with_its_token, borrow_gigabyte())
{
	struct isolation first_place, token = {.count = 0};
	struct zone *zone = arena_phantom_zone(a);
	const u32 first = arena_phantom_block(a) + AT;

	EXPECT_EQ(isolate_range(zone, first, RANGE, &first_place), 0);
	isolate_move(zone, &first_place, &token);
	EXPECT_EQ(first_place.count, 0);
	EXPECT_EQ(token.count, (u64)RANGE);
	EXPECT(arena_accounted(a));
	isolate_undo(zone, &token);
	EXPECT_EQ(token.count, 0);
	EXPECT(one_free_gigabyte(zone));
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
		EXPECT_EQ(section_close(&a->mm, section + i), (u64)-EBUSY);
		EXPECT_EQ(section_state(&a->mm, section + i), SECTION_OPEN);
	}
	EXPECT_EQ(records_digest(a, first), digest);
	EXPECT_EQ(section_close(&a->mm, section + 2), 0);
	isolate_undo(zone, &token);
	for (unsigned i = 0; i < 2; i++)
		EXPECT_EQ(section_close(&a->mm, section + i), 0);
	/* A section that is not open cannot be isolated. */
	EXPECT_EQ(isolate_range(zone, first, 2, &token), (u64)-EBUSY);
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

	while (!block_is_isolated(block) && !atomic_load_acquire(&p->stop))
		cpu_relax();
	block_list_publish_free(&p->a->mm, &p->list);
}

/*
 * Isolation waits for blocks in transit, except for those that are on their way to UNOPENED,
 * because they come back as different blocks.
 */
TEST(mm_isolate, a_block_whose_section_closes_is_not_isolated)
{
	struct publisher p = {.list = BLOCK_LIST_INIT};
	const cpu_t other = cpus_find_other();
	struct isolation token;
	struct zone *zone;

	if (other == CPU_NONE)
		SKIP("needs two CPUs");
	p.a = borrow_gigabyte();
	if (!p.a)
		return;
	zone = arena_phantom_zone(p.a);
	EXPECT_EQ(block_take(zone, FREE_BARE, BLOCK_ORDER, 1, BLOCK_UNOPENED, &p.list), 1);
	REQUIRE(work_start(other, publish_when_isolated, &p) == 0);
	EXPECT_EQ(isolate_range(zone, p.list.head, 4, &token), (u64)-EBUSY);
	atomic_store_release(&p.stop, 1);
	work_wait(other, 0);
	EXPECT_EQ(listed(zone, MIGRATE_ISOLATE), 0);
	EXPECT(one_free_gigabyte(zone));
	EXPECT(arena_accounted(p.a));
	arena_return(p.a);
}

/* Pages come and go on all CPUs while ranges are isolated and released. */
struct churn {
	struct arena *a;
	u32 done, isolated;
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
	atomic_fetch_add(&c->done, 1);
}

TEST(mm_isolate, ranges_come_and_go_while_pages_do)
{
	struct churn c = {.a = borrow_gigabyte()};
	cpu_t cpus;

	if (!c.a)
		return;
	cpus = cpus_run_together(churn, &c);
	EXPECT_EQ(c.done, cpus);
	cpus_note_met(c.isolated, "ranges isolated");
	EXPECT_EQ(listed(arena_phantom_zone(c.a), MIGRATE_ISOLATE), 0);
	EXPECT(arena_accounted(c.a));
	pcp_drain_all(&c.a->mm);
	EXPECT(arena_small_lists_whole(c.a));
	EXPECT(arena_accounted(c.a));
	arena_return(c.a);
}
