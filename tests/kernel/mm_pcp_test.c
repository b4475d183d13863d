/*
 * Per-CPU lists: which pages enter them, where the pages drain to, and drains that another CPU
 * requests.
 */
#include "mm/page/pcp_types.h"
#include "tests/kernel/mm_test.h"

/*
 * Take all 512 pages of one block, and no others. A refill takes up to 256 pages of the block at
 * once, and the last page empties the rings.
 */
static struct page *take_whole_block(struct arena *a)
{
	struct page *first = NULL;

	for (unsigned i = 0; i < BLOCK_FRAMES; i++) {
		struct page *page = take_phantom(a, 0);

		if (!page)
			return NULL;
		first = first && first < page ? first : page;
	}
	return first;
}

/* A block whose pages all belong to the case. */
static struct {
	struct zone *zone;
	struct page *pages;
	u32 index;
} whole;

/* NULL if the block could not be had; the case is then skipped already, or has failed. */
static struct arena *borrow_whole_block(const char *types)
{
	struct arena *a;

	test_option("pcp.type_cache", types);
	a = arena_usual();
	if (!a)
		return NULL;
	whole.zone = arena_phantom_zone(a);
	whole.pages = take_whole_block(a);
	EXPECT(whole.pages && IS_ALIGNED(page_to_pfn(whole.pages), BLOCK_FRAMES));
	if (test_failed())
		return NULL;
	whole.index = block_of_page(whole.pages);
	return a;
}

enum { SINGLES = 20 };

/*
 * free_singles() frees pages of which no two can merge; free_the_rest() frees the rest of the
 * block.
 */
static void free_singles(struct arena *a)
{
	for (unsigned i = 0; i < SINGLES; i++)
		mm_page_free(&a->mm, &whole.pages[2 * i]);
}

static void free_the_rest(struct arena *a)
{
	for (unsigned i = 0; i < BLOCK_FRAMES; i++)
		if (i % 2 || i >= 2 * SINGLES)
			mm_page_free(&a->mm, &whole.pages[i]);
	pcp_drain_all(&a->mm);
}

TEST_ARENA(mm_pcp, pages_of_a_retyped_block_drain_to_its_new_list, borrow_whole_block("off"))
{
	EXPECT_EQ(pcp_count(&a->mm, whole.zone), 0);
	free_singles(a);
	EXPECT_EQ(pcp_count(&a->mm, whole.zone), SINGLES); /* on the list for movable pages */

	retype(whole.zone, whole.index, MIGRATE_UNMOVABLE);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(pcp_count(&a->mm, whole.zone), 0);
	EXPECT_EQ(listed_small(whole.zone, MIGRATE_UNMOVABLE), SINGLES);
	EXPECT_EQ(listed_small(whole.zone, MIGRATE_MOVABLE), 0);
	EXPECT(arena_accounted(a));

	free_the_rest(a);
	/* The block is wholly free: it left the small lists, under its new type. */
	EXPECT_EQ(whole.zone->free_small, 0);
	EXPECT_EQ(whole.zone->block_list[FREE_FULL][MIGRATE_UNMOVABLE][0], whole.index);
}

/*
 * pcp.type_cache=on restores the old rule: draining believes the type that was found on freeing.
 * Linux before the series cached the type of each page, not of each block. The cached type is the
 * one that the block had when that page was freed.
 */
TEST_ARENA(mm_pcp, a_cached_type_is_that_of_each_page, borrow_whole_block("on"))
{
	free_singles(a);
	retype(whole.zone, whole.index, MIGRATE_UNMOVABLE);
	for (unsigned i = 0; i < SINGLES; i++)
		mm_page_free(&a->mm, &whole.pages[2 * SINGLES + 2 * i]);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(pcp_stats(&a->mm).stale, SINGLES);
	EXPECT_EQ(pcp_stats(&a->mm).drain_lookups, 0); /* the cache exists to save these */
	EXPECT_EQ(listed_small(whole.zone, MIGRATE_MOVABLE), SINGLES);
	EXPECT_EQ(listed_small(whole.zone, MIGRATE_UNMOVABLE), SINGLES);
	for (unsigned i = 0; i < BLOCK_FRAMES; i++)
		if (i % 2 || i >= 4 * SINGLES)
			mm_page_free(&a->mm, &whole.pages[i]);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(whole.zone->free_small, 0); /* the pages merged across lists */
}

/*
 * A cached type may be stale, but pages of a block that was isolated meanwhile are not given out,
 * because the isolated frame may be a bad one.
 */
TEST_ARENA(mm_pcp, a_cached_type_does_not_undo_an_isolation, borrow_whole_block("on"))
{
	struct isolation token;

	free_singles(a);
	EXPECT_EQ(pcp_count(&a->mm, whole.zone), SINGLES);
	EXPECT_EQ(isolate_block(whole.zone, whole.index, &token), 0);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(pcp_stats(&a->mm).stale, 0);
	EXPECT_EQ(listed_small(whole.zone, MIGRATE_ISOLATE), SINGLES);
	EXPECT_EQ(listed_small(whole.zone, MIGRATE_MOVABLE), 0);
	EXPECT(arena_accounted(a));
	isolate_undo(whole.zone, &token);
}

/*
 * Count the look-ups for 512 pages that are allocated and freed once, in bulk or singly, as they
 * are fetched, freed and drained. At least 512 pages are fetched and drained.
 */
static struct pcp_stats look_ups(const char *types, bool bulk)
{
	static struct page *pages[BLOCK_FRAMES];
	struct pcp_stats stats = {0};
	struct arena *a;

	test_option("pcp.type_cache", types);
	a = arena_usual();
	if (!a)
		return stats;
	for (unsigned i = 0; i < BLOCK_FRAMES; i++)
		pages[i] = take_phantom(a, 0);
	/* the last one stays on the CPU's list; a way that stores types does so in private[0] */
	pages[BLOCK_FRAMES - 1]->private[0] = ~0ULL;
	if (bulk)
		mm_page_free_bulk(&a->mm, pages, BLOCK_FRAMES);
	else
		for (unsigned i = 0; i < BLOCK_FRAMES; i++)
			mm_page_free(&a->mm, pages[i]);
	EXPECT_EQ(pages[BLOCK_FRAMES - 1]->private[0] != ~0ULL, a->mm.pcp_types->stored);
	pcp_drain_all(&a->mm);
	stats = pcp_stats(&a->mm);
	EXPECT(arena_accounted(a));
	EXPECT(arena_small_lists_whole(a));
	arena_return(a);
	return stats;
}

/* Check the table at the head of pcp_types.c by counting look-ups. */
TEST(mm_pcp, each_way_looks_types_up_where_it_says)
{
	for (unsigned bulk = 0; bulk < 2; bulk++) {
		struct pcp_stats s = look_ups("on", bulk);

		if (s.lookups == 0)
			return; /* there was no arena */
		EXPECT_EQ(s.lookups, BLOCK_FRAMES);
		EXPECT_EQ(s.fetch_lookups + s.drain_lookups, 0);
		s = look_ups("first", bulk);
		EXPECT_EQ(s.lookups, bulk ? 2 * BLOCK_FRAMES : BLOCK_FRAMES);
		EXPECT(s.fetch_lookups >= BLOCK_FRAMES);
		EXPECT(s.drained >= BLOCK_FRAMES && s.drain_lookups == s.drained);
		s = look_ups("each", bulk);
		EXPECT_EQ(s.lookups, BLOCK_FRAMES);
		EXPECT_EQ(s.fetch_lookups, 0);
		EXPECT(s.drained >= BLOCK_FRAMES && s.drain_lookups == s.drained);
		s = look_ups("off", bulk);
		EXPECT_EQ(s.lookups, BLOCK_FRAMES);
		EXPECT_EQ(s.fetch_lookups, 0);
		EXPECT(s.drained >= BLOCK_FRAMES);
		EXPECT_EQ(s.drain_lookups, s.evictions); /* one look-up for each block */
	}
}

/*
 * The notes on the pages that lie on the lists follow the old rule, so the lists are emptied before
 * a new rule takes effect.
 */
TEST_ARENA(mm_pcp, lists_are_emptied_before_types_are_known_otherwise, borrow_whole_block("off"))
{
	struct page *huge;

	for (unsigned i = 0; i < BLOCK_FRAMES; i++)
		/* this word belongs to the holder of the page */
		whole.pages[i].private[0] = MIGRATE_UNMOVABLE;
	free_singles(a);
	EXPECT_EQ(pcp_count(&a->mm, whole.zone), SINGLES);
	EXPECT(pcp_set_types(&a->mm, &pcp_types[PCP_TYPES_ON]) == &pcp_types[PCP_TYPES_OFF]);
	EXPECT_EQ(pcp_count(&a->mm, whole.zone), 0);
	EXPECT_EQ(listed_small(whole.zone, MIGRATE_MOVABLE), SINGLES);
	/*
	 * The type of each page is stored, so no page takes the fast path, also after a huge page
	 * has opened the lists again.
	 */
	huge = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, PAGE_NODE, 1);
	REQUIRE(huge);
	for (unsigned i = 0; i < SINGLES; i++)
		mm_page_free(&a->mm, &whole.pages[2 * SINGLES + i]);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(pcp_stats(&a->mm).stale, 0);
	EXPECT_EQ(listed_small(whole.zone, MIGRATE_UNMOVABLE), 0);
	mm_page_free(&a->mm, huge);
}

TEST_ARENA(mm_pcp, pages_of_isolated_blocks_never_enter, borrow_whole_block("off"))
{
	struct isolation token;

	EXPECT_EQ(isolate_block(whole.zone, whole.index, &token), 0);
	free_singles(a);
	EXPECT_EQ(pcp_count(&a->mm, whole.zone), 0);
	EXPECT_EQ(whole.zone->free_small, SINGLES);
	EXPECT_EQ(block_look_at(&a->mm, whole.index).free_pages, SINGLES);
	EXPECT(arena_accounted(a));
	isolate_undo(whole.zone, &token);
}

TEST_ARENA(mm_pcp, what_a_cpu_holds_too_much_goes_back, arena_usual())
{
	struct page *chain = NULL, *last;
	s64 high;
	u64 count;
	struct zone *zone = arena_phantom_zone(a);

	REQUIRE((last = take_phantom(a, 0)));
	high = pcp_mine(zone)->high;
	EXPECT(high >= PCP_HIGH_MIN &&
	       (u64)high * PCP_SHARE * cpu_count <=
		       MAX(zone->ram, PCP_HIGH_MIN * PCP_SHARE * cpu_count));
	count = (u64)high + 4 * BLOCK_FRAMES;
	REQUIRE(chain_take(&chain, &a->mm, count, 0, PAGE_NODE, a->options.nodes) == count);
	EXPECT_EQ(chain_give(&chain, &a->mm), count);
	EXPECT((s64)pcp_count(&a->mm, zone) <= high);
	EXPECT((s64)pcp_count(&a->mm, zone) > high / 2 - BLOCK_FRAMES);
	EXPECT(pcp_stats(&a->mm).evictions > 0);
	/* the page freed last goes out first, unless its block alone is too much */
	REQUIRE(chain_take(&chain, &a->mm, 8, 0, PAGE_NODE, a->options.nodes) == 8);
	mm_page_free(&a->mm, last);
	EXPECT_EQ(page_to_pfn(take_phantom(a, 0)) / 64, page_to_pfn(last) / 64);
	EXPECT_EQ(chain_give(&chain, &a->mm), 8);
}

/* ---- drains that another CPU requests ---- */

static void leave_some_on_the_rings(void *arg)
{
	struct arena *a = arg;
	struct page *pages[10];

	for (unsigned i = 0; i < ARRAY_LEN(pages); i++)
		pages[i] = take_phantom(a, 0);
	for (unsigned i = 0; i < ARRAY_LEN(pages); i++)
		if (pages[i])
			mm_page_free(&a->mm, pages[i]);
}

TEST_ARENA(mm_pcp, a_drain_empties_the_rings_of_all_cpus, arena_usual())
{
	const cpu_t cpus = cpus_run_together(leave_some_on_the_rings, a);

	EXPECT(pcp_count(&a->mm, arena_phantom_zone(a)) >= cpus * 10);
	EXPECT(arena_accounted(a));
	pcp_drain_all(&a->mm);
	EXPECT_EQ(pcp_count(&a->mm, arena_phantom_zone(a)), 0);
	EXPECT(arena_small_lists_whole(a));
}

struct insider {
	struct arena *a;
	u32 inside, leave;
};

/*
 * A CPU that is inside the allocator, with pages on its ring. The interrupt that requests a drain
 * must leave the ring alone.
 */
static void stay_inside(void *arg)
{
	struct insider *in = arg;
	struct pcp *pcp;

	leave_some_on_the_rings(in->a);
	pcp = pcp_enter(&in->a->mm);
	atomic_store_release(&in->inside, 1);
	CPUS_WAIT_FOR(atomic_load_acquire(&in->leave), CPU_NONE,
		      "a case to let a CPU leave the allocator");
	pcp_leave(&in->a->mm, pcp);
}

static void drain(void *arg)
{
	pcp_drain_all(arg);
}

TEST_ARENA(mm_pcp, a_cpu_inside_the_allocator_drains_when_it_leaves, arena_for_cpus(3))
{
	struct insider in = {.a = a};
	const cpu_t owner = cpus_find_other();
	cpu_t asker;
	u32 moved;

	REQUIRE(work_start(owner, stay_inside, &in) == 0);
	CPUS_WAIT_FOR(atomic_load_acquire(&in.inside), owner, "a CPU to enter the allocator");
	asker = cpus_find_other();
	REQUIRE(work_start(asker, drain, &a->mm) == 0);
	CPUS_WAIT_FOR(atomic_load_acquire(&a->mm.drain_messages) != 0, owner,
		      "the owner to be asked");
	EXPECT(!work_done(asker)); /* the CPU that asked is waiting */
	EXPECT(pcp_count(&a->mm, arena_phantom_zone(a)) >= 10);
	moved = atomic_load_relaxed(&cpu_data(asker)->waits.moved[WAIT_DRAINED]);
	atomic_store_release(&in.leave, 1);
	work_wait(asker, 0);
	/* waits for that CPU count the end of the drain as progress */
	EXPECT(atomic_load_relaxed(&cpu_data(asker)->waits.moved[WAIT_DRAINED]) != moved);
	EXPECT_EQ(pcp_count(&a->mm, arena_phantom_zone(a)), 0);
	work_wait(owner, 0);
}

/*
 * At first one CPU holds pages, and that CPU alone is interrupted. Afterwards no CPU holds any, and
 * no CPU is interrupted.
 */
TEST_ARENA(mm_pcp, only_cpus_that_hold_something_are_interrupted, arena_for_cpus(2))
{
	const cpu_t owner = cpus_find_other();

	pcp_drain_all(&a->mm);
	EXPECT_EQ(a->mm.drain_messages, 0);
	REQUIRE(work_start(owner, leave_some_on_the_rings, a) == 0);
	work_wait(owner, 0);
	EXPECT(pcp_count(&a->mm, arena_phantom_zone(a)) >= 10);
	EXPECT(a->mm.pcp[owner]->holding);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(a->mm.drain_messages, 1);
	EXPECT_EQ(pcp_count(&a->mm, arena_phantom_zone(a)), 0);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(a->mm.drain_messages, 1);
	EXPECT_EQ(a->mm.drains, 3);
}

enum { ASKERS_MAX = 31 };

static struct asking {
	struct arena *a;
	u32 asked;
} asking;

static void ask(void *arg)
{
	struct asking *s = arg;
	const u64 tag = pcp_drain_tag(&s->a->mm);

	atomic_fetch_add(&s->asked, 1);
	pcp_drain_wait(&s->a->mm, tag);
}

/*
 * Let up to `count` idle CPUs ask for a drain, and wait until they have taken their tags. Returns
 * the number of CPUs.
 */
static u32 start_askers(struct asking *s, u32 count)
{
	const u32 before = atomic_load_relaxed(&s->asked);
	const u32 started = cpus_start_idle(ask, s, count);

	CPUS_WAIT_FOR(atomic_load_acquire(&s->asked) >= before + started, CPU_NONE,
		      "CPUs to ask for a drain");
	return started;
}

/*
 * This CPU is inside the allocator and keeps a drain from ending. The CPUs that ask meanwhile come
 * too late for that drain and share the next one.
 */
TEST_ARENA(mm_pcp, cpus_that_ask_at_once_share_a_drain, arena_for_cpus(4))
{
	struct pcp *pcp;
	u32 late;

	asking = (struct asking){.a = a};
	cpus_wait_idle();
	leave_some_on_the_rings(a);
	pcp = pcp_enter(&a->mm);
	EXPECT_EQ(start_askers(&asking, 1), 1);
	CPUS_WAIT_FOR(atomic_load_acquire(&a->mm.drain_messages) != 0, CPU_NONE,
		      "a drain to ask this CPU");
	late = start_askers(&asking, ASKERS_MAX - 1);
	EXPECT(late >= 2);
	/* The drain goes on, and the CPU that runs it may still write both counters. */
	EXPECT_EQ(atomic_load_relaxed(&a->mm.drains), 1);
	EXPECT_EQ(atomic_load_relaxed(&a->mm.drain_messages), 1);
	pcp_leave(&a->mm, pcp);
	cpus_await_work();
	EXPECT_EQ(a->mm.drains, 2);
	print("  # 1 + %u CPUs asked: %llu drains, %llu messages\n", late, a->mm.drains,
	      a->mm.drain_messages);
	EXPECT_EQ(pcp_count(&a->mm, arena_phantom_zone(a)), 0);
}

struct queuer {
	struct arena *a;
	u32 locked;
	s64 left; /* frames that the CPU held after it had released the lock */
};

/*
 * A CPU that is not inside the allocator but has the zone's lock when the interrupt asks for a
 * drain. It reads its lists with interrupts off, so that no interrupt drains them after the lock
 * was released.
 */
static void ask_while_locked(void *arg)
{
	struct queuer *q = arg;
	struct zone *zone = arena_phantom_zone(q->a);
	const struct pcp *mine = pcp_of_this_cpu(&q->a->mm);

	leave_some_on_the_rings(q->a);
	zone_lock(zone);
	atomic_store_release(&q->locked, 1);
	CPUS_WAIT_FOR(atomic_load_relaxed(&mine->drain_wanted), CPU_NONE,
		      "a drain to be asked for");
	irq_disable();
	zone_unlock(zone);
	q->left = mine->zone[zone->index]->held;
	irq_enable();
}

TEST_ARENA(mm_pcp, a_cpu_with_the_lock_drains_as_it_gives_it_back, arena_for_cpus(2))
{
	struct queuer q = {.a = a, .left = -1};
	const cpu_t owner = cpus_find_other();

	REQUIRE(work_start(owner, ask_while_locked, &q) == 0);
	CPUS_WAIT_FOR(atomic_load_acquire(&q.locked), owner, "a CPU to have the zone's lock");
	pcp_drain_all(&a->mm);
	work_wait(owner, 0);
	EXPECT_EQ(q.left, 0);
	EXPECT_EQ(pcp_count(&a->mm, arena_phantom_zone(a)), 0);
}

struct keeper {
	struct arena *a;
	u32 locked;
	bool queued; /* another CPU queued for the lock before it was released */
};

/* Hold the lock until another CPU queues for it. */
static void hold_until_queued(void *arg)
{
	struct keeper *h = arg;
	struct zone *zone = arena_phantom_zone(h->a);
	struct wait wait = wait_begin(WAIT_ANSWER, "somebody to queue for a zone's lock");

	wait.bound = 0;
	zone_lock(zone);
	atomic_store_release(&h->locked, 1);
	do {
		wait_spin(&wait, CPU_NONE);
		h->queued = (u16)(atomic_load_relaxed(&zone->lock.next) - zone->lock.owner) > 1;
	} while (!h->queued);
	zone_unlock(zone);
}

TEST_ARENA(mm_pcp, a_cpu_that_is_late_queues_for_a_lock_that_is_never_free, arena_for_cpus(3))
{
	struct keeper h = {.a = a};
	const cpu_t owner = cpus_find_other();
	cpu_t holder;

	REQUIRE(work_start(owner, leave_some_on_the_rings, a) == 0);
	work_wait(owner, 0);
	cpumask_foreach(holder, &cpus_online)
		if (holder != cpu_id() && holder != owner)
			break;
	REQUIRE(work_start(holder, hold_until_queued, &h) == 0);
	CPUS_WAIT_FOR(atomic_load_acquire(&h.locked), holder, "a CPU to have the zone's lock");
	EXPECT(pcp_count(&a->mm, arena_phantom_zone(a)) >= 10);
	pcp_drain_all(&a->mm);
	work_wait(holder, 0);
	EXPECT(h.queued);
	EXPECT_EQ(pcp_count(&a->mm, arena_phantom_zone(a)), 0);
}

enum { FULL_SETS = PCP_EVICT, FULL_BLOCKS = FULL_SETS * PCP_WAYS };

/* Blocks for all slots of some sets, and then one more for the first set. */
static pfn_t block_for_slot(const struct arena *a, u32 i)
{
	return block_pfn(arena_phantom_block(a) + i % FULL_SETS + i / FULL_SETS * PCP_SETS);
}

/*
 * Fill as many sets as one turn at the lock may empty, each block with `frames`, and free one page
 * more to the first set. Returns how many frames go back to the zone.
 */
static u64 given_back_by_a_conflict(struct arena *a, unsigned frames)
{
	const u64 held = (u64)FULL_BLOCKS * frames;
	struct zone *zone = arena_phantom_zone(a);

	for (u32 i = 0; i <= FULL_BLOCKS; i++)
		EXPECT_EQ(mm_contig_alloc_range(&a->mm, block_for_slot(a, i), BLOCK_FRAMES), 0);
	for (u32 i = 0; i < FULL_BLOCKS; i++)
		for (unsigned at = 0; at < frames; at++)
			mm_page_free(&a->mm, pfn_page(&a->mm, block_for_slot(a, i) + at));
	EXPECT_EQ(pcp_count(&a->mm, zone), held);
	mm_page_free(&a->mm, pfn_page(&a->mm, block_for_slot(a, FULL_BLOCKS)));
	EXPECT(arena_accounted(a));
	return held + 1 - pcp_count(&a->mm, zone);
}

/* Slots go back together, to save turns at the lock, up to an eighth of what the CPU may hold. */
TEST(mm_pcp, a_full_set_gives_back_few_slots_beyond_its_own)
{
	static const unsigned row[] = {9, 100, 400};

	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		/* of this zone one CPU may hold a little more than 8192 frames */
		struct arena *a = arena_borrow(MIB(16), .phantom = MIB(256) * cpu_count + MIB(32));
		u64 eighth, slots, back;

		if (!a)
			return;
		back = given_back_by_a_conflict(a, row[i]);
		eighth = (u64)pcp_mine(arena_phantom_zone(a))->high / 8;
		slots = MIN(DIV_ROUND_UP(eighth, row[i]), (u64)PCP_EVICT);
		EXPECT(row[i] < 400 || slots < PCP_EVICT);
		EXPECT_EQ(back, slots * row[i]);
		arena_return(a);
	}
}
