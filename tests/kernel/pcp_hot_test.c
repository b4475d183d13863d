/*
 * Per-CPU lists: the hot page of each type, the block that was freed to last, and how often the
 * zone's lock is taken for memory in pieces and for huge pages.
 */
#include "tests/kernel/mm_test.h"
#include "tests/kernel/provoke.h"

/* An arena for pages that are freed as pcp.type_cache=off frees them. */
static struct arena *borrow(void)
{
	test_option("pcp.type_cache", "off");
	return arena_usual();
}

/*
 * Allocate pages until one lies in another block whose slot is in the same set as that of `index`.
 * The caller never frees the pages before it.
 */
static struct page *alloc_in_set_of(struct arena *a, u32 index)
{
	struct page *page;

	do {
		page = take_phantom(a, 0);
	} while (page && (block_of_page(page) == index ||
			  block_of_page(page) % PCP_SETS != index % PCP_SETS));
	return page;
}

/* Allocate until the CPU's list of movable pages is empty. */
static void alloc_all_held(struct arena *a)
{
	while (pcp_count(&a->mm, arena_phantom_zone(a)) > 0)
		if (!take_phantom(a, 0))
			return;
}

/* Make `page` the hot page of its type, and its slot empty. Nothing else is held of its block. */
static void make_hot(struct arena *a, struct page *page)
{
	mm_page_free(&a->mm, page);
	EXPECT(take_phantom(a, 0) == page);
	mm_page_free(&a->mm, page);
	EXPECT(pcp_mine(arena_phantom_zone(a))->recent.hot == page);
}

TEST_ARENA(mm_pcp, a_hot_page_is_drained, borrow())
{
	struct page *page;
	u64 listed;
	struct zone *zone = arena_phantom_zone(a);

	REQUIRE((page = take_phantom(a, 0)));
	alloc_all_held(a);
	listed = listed_small(zone, MIGRATE_MOVABLE);
	make_hot(a, page);
	EXPECT_EQ(pcp_count(&a->mm, zone), 1);
	EXPECT(arena_accounted(a));
	pcp_drain_all(&a->mm);
	EXPECT_EQ(pcp_count(&a->mm, zone), 0);
	EXPECT_EQ(listed_small(zone, MIGRATE_MOVABLE), listed + 1);
}

/* A hot page is held without a bit in the slot of its block, so that slot may look empty. */
TEST_ARENA(mm_pcp, a_block_with_a_hot_page_keeps_its_slot, borrow())
{
	struct page *hot, *other;

	REQUIRE((hot = take_phantom(a, 0)));
	REQUIRE((other = alloc_in_set_of(a, block_of_page(hot))));
	alloc_all_held(a);
	make_hot(a, hot);
	mm_page_free(&a->mm, other); /* claims a slot of the same set */
	EXPECT_EQ(pcp_count(&a->mm, arena_phantom_zone(a)), 2);
	EXPECT(take_phantom(a, 0) == other);
	EXPECT(take_phantom(a, 0) == hot);
}

/* Freeing inline goes to the block that was freed to last, as long as that has its slot. */
TEST_ARENA(mm_pcp, a_slot_given_to_another_block_is_not_freed_to, borrow())
{
	struct page *page, *other;

	REQUIRE((page = take_phantom(a, 0)));
	alloc_all_held(a);
	mm_page_free(&a->mm, page);
	EXPECT(take_phantom(a, 0) == page);
	REQUIRE((other = alloc_in_set_of(a, block_of_page(page)))); /* fetched into the slot */
	mm_page_free(&a->mm, page);
	mm_page_free(&a->mm, other);
	EXPECT(arena_accounted(a));
	pcp_drain_all(&a->mm);
	EXPECT_EQ(pcp_count(&a->mm, arena_phantom_zone(a)), 0);
}

/*
 * Allocate until two pages of one block were given out, of which *first stays with the caller and
 * whose word in the block's slot is not empty, and a page of another block after them. No page is
 * hot then, and the next page of the first block is not freed inline. NULL if there is no memory.
 */
static struct page *hold_of_two_blocks(struct arena *a, struct page **first)
{
	struct page *other;

	alloc_all_held(a);
	*first = take_phantom(a, 0);
	if (!*first)
		return NULL;
	do {
		other = take_phantom(a, 0);
	} while (other && block_of_page(other) == block_of_page(*first));
	if (!other)
		return NULL;
	mm_page_free(&a->mm, *first + 1); /* its word is not empty from here on */
	mm_page_free(&a->mm, *first + 2);
	mm_page_free(&a->mm, other);
	return take_phantom(a, 0) == other ? other : NULL;
}

/* Freeing to another block than the last one looks at the type that block has now. */
TEST_ARENA(mm_pcp, a_page_freed_elsewhere_has_the_type_of_its_block, borrow())
{
	struct page *page;

	REQUIRE(hold_of_two_blocks(a, &page));
	EXPECT(!pcp_mine(arena_phantom_zone(a))->recent.hot);
	retype(arena_phantom_zone(a), block_of_page(page), MIGRATE_RECLAIMABLE);
	mm_page_free(&a->mm, page);
	EXPECT(alloc_on_phantom(a, 0, USE_RECLAIMABLE) == page);
	retype(arena_phantom_zone(a), block_of_page(page), MIGRATE_CMA);
	mm_page_free(&a->mm, page);
	EXPECT(!alloc_on_phantom(a, 0, (enum page_use)MIGRATE_CMA)); /* a type, but no use */
	pcp_drain_all(&a->mm);
}

TEST_ARENA(mm_pcp, a_page_freed_elsewhere_to_an_isolated_block_is_not_kept, borrow())
{
	struct isolation token;
	struct page *page;
	u64 held;
	struct zone *zone = arena_phantom_zone(a);

	REQUIRE(hold_of_two_blocks(a, &page));
	REQUIRE(isolate_block(zone, block_of_page(page), &token) == 0);
	held = pcp_count(&a->mm, zone);
	mm_page_free(&a->mm, page);
	EXPECT_EQ(pcp_count(&a->mm, zone), held);
	isolate_undo(zone, &token);
	pcp_drain_all(&a->mm);
}

/* ---- how often the lock is taken ---- */

enum { BLOCKS = 94, PIECES = BLOCKS * BLOCK_FRAMES / 2 };

/* Takings so far of the zone's lock, modulo 2^16: the tickets drawn at it. */
static u16 takings(struct arena *a)
{
	return atomic_load_relaxed(&arena_phantom_zone(a)->lock.next);
}

static struct page *block[BLOCKS];

/* Take BLOCKS blocks. False if there is too little memory. */
static bool take_blocks(struct arena *a)
{

	alloc_all_held(a);
	for (unsigned b = 0; b < BLOCKS; b++) {
		for (unsigned i = 0; i < BLOCK_FRAMES; i++) {
			struct page *page = take_phantom(a, 0);

			if (!page)
				return false;
			block[b] = block_page(&a->mm, block_of_page(page));
		}
	}
	return true;
}

/*
 * Free every second page of the blocks: one page of each block, then the next of each, straight to
 * the zone, so that neighbours on its lists lie in different blocks.
 */
static void leave_pieces(struct arena *a)
{
	pcp_disable(arena_phantom_zone(a));
	for (unsigned i = 0; i < BLOCK_FRAMES; i += 2)
		for (unsigned b = 0; b < BLOCKS; b++)
			mm_page_free(&a->mm, &block[b][i]);
	pcp_enable(arena_phantom_zone(a));
}

/*
 * Of a block in pieces 256 frames are free here. One turn at the lock for each block would be four
 * for 1,000 pages, and two turns would be eight. CPUs that may hold less than 4,096 frames fetch
 * and give back less at a time; the bounds are not for them.
 */
TEST_ARENA(mm_pcp, memory_in_pieces_takes_the_lock_seldom, borrow())
{
	struct page *chain = NULL;
	u16 before;

	REQUIRE(take_blocks(a));
	leave_pieces(a);
	before = takings(a);
	EXPECT_EQ(chain_take(&chain, &a->mm, PIECES, 0, PAGE_NODE, a->options.nodes), PIECES);
	if (pcp_mine(arena_phantom_zone(a))->high >= 8 * BLOCK_FRAMES)
		EXPECT((u16)(takings(a) - before) <= 3 * PIECES / 1000);
	before = takings(a);
	chain_give(&chain, &a->mm);
	if (pcp_mine(arena_phantom_zone(a))->high >= 8 * BLOCK_FRAMES)
		EXPECT((u16)(takings(a) - before) <= 2 * PIECES / 1000);
}

/*
 * The list of 2 MiB pages is filled in one turn at the lock and emptied by three quarters in one.
 * The first round makes the pages and leaves a full list. With very many CPUs lists are too short.
 */
TEST_ARENA(mm_pcp, huge_pages_take_the_lock_seldom, borrow())
{
	enum { PAGES = 400 };
	struct page *chain = NULL;
	u64 held;
	u16 before;

	test_option("hvo", "on");
	REQUIRE(chain_take(&chain, &a->mm, PAGES, BLOCK_ORDER, PAGE_NODE, a->options.nodes) ==
		PAGES);
	chain_give(&chain, &a->mm);
	held = (u64)pcp_mine(arena_phantom_zone(a))->high / BLOCK_FRAMES;
	EXPECT(held <= PCP_HUGE_MAX);
	before = takings(a);
	EXPECT_EQ(chain_take(&chain, &a->mm, PAGES, BLOCK_ORDER, PAGE_NODE, a->options.nodes),
		  PAGES);
	if (held >= 4)
		EXPECT((u16)(takings(a) - before) <= DIV_ROUND_UP(PAGES, held));
	before = takings(a);
	chain_give(&chain, &a->mm);
	if (held >= 4)
		EXPECT((u16)(takings(a) - before) <= DIV_ROUND_UP(PAGES * 4, held * 3));
}

/* The pieces of one block are neighbours on the list here. Those of the next blocks come, too. */
TEST_ARENA(mm_pcp, few_pieces_of_many_blocks_are_fetched_together, borrow())
{
	enum { EACH = 4 };
	struct page *chain = NULL;
	u16 before;

	REQUIRE(take_blocks(a));
	pcp_disable(arena_phantom_zone(a));
	for (unsigned b = 0; b < BLOCKS; b++)
		for (unsigned i = 0; i < EACH; i++)
			mm_page_free(&a->mm, &block[b][2 * i]);
	pcp_enable(arena_phantom_zone(a));
	before = takings(a);
	EXPECT_EQ(chain_take(&chain, &a->mm, BLOCKS * EACH, 0, PAGE_NODE, a->options.nodes),
		  BLOCKS * EACH);
	EXPECT((u16)(takings(a) - before) <= BLOCKS);
	chain_give(&chain, &a->mm);
}

/* ---- other CPUs ---- */

/*
 * Per-CPU lists: orders that share words, disabling, huge entries, bulk calls, and CPUs that do all
 * this to each other.
 */

TEST_ARENA(mm_pcp, freed_neighbours_are_one_larger_page, arena_usual())
{
	struct page *eight[8], *large;
	u64 refills;
	struct zone *zone = arena_phantom_zone(a);

	large = take_phantom(a, 3);
	REQUIRE(large);
	mm_page_free(&a->mm, large);
	for (unsigned i = 0; i < 8; i++) {
		eight[i] = take_phantom(a, 0);
		/* the lowest page of those freed last comes first */
		REQUIRE(eight[i] == large + i);
	}
	for (unsigned i = 0; i < 8; i++)
		mm_page_free(&a->mm, eight[(i * 3) % 8]);
	refills = pcp_stats(&a->mm).refills;
	EXPECT(take_phantom(a, 3) == large);
	EXPECT_EQ(page_order(large), 3);
	EXPECT(page_head(&large[7]) == large);
	EXPECT_EQ(pcp_stats(&a->mm).refills, refills);
	mm_page_free(&a->mm, large);
	pcp_drain_all(&a->mm);
	EXPECT_EQ(zone->free_small, 0); /* the whole block went back and merged */
}

TEST_ARENA(mm_pcp, nothing_is_held_while_disabled, arena_usual())
{
	struct page *small, *huge, *pages[3];
	struct zone *zone = arena_phantom_zone(a);

	small = take_phantom(a, 0);
	huge = take_phantom(a, BLOCK_ORDER);
	REQUIRE(small && huge);
	EXPECT(pcp_count(&a->mm, zone) > 0);
	pcp_disable(zone);
	pcp_disable(zone);
	EXPECT_EQ(pcp_count(&a->mm, zone), 0);
	mm_page_free(&a->mm, small);
	mm_page_free(&a->mm, huge);
	EXPECT_EQ(pcp_count(&a->mm, zone), 0);
	for (unsigned i = 0; i < ARRAY_LEN(pages); i++) {
		pages[i] = take_phantom(a, i == 2 ? BLOCK_ORDER : i);
		REQUIRE(pages[i]);
		EXPECT_EQ(pcp_count(&a->mm, zone), 0);
	}
	pcp_enable(zone);
	mm_page_free(&a->mm, pages[0]);
	EXPECT_EQ(pcp_count(&a->mm, zone), 0); /* one of the two calls is still in effect */
	pcp_enable(zone);
	mm_page_free(&a->mm, pages[1]);
	EXPECT_EQ(pcp_count(&a->mm, zone), 2);
	mm_page_free(&a->mm, pages[2]);
}

TEST_ARENA(mm_pcp, a_huge_entry_waits_for_its_round, arena_usual())
{
	u64 tag;
	u32 index;
	struct zone *zone = arena_phantom_zone(a);
	struct page *huge = take_phantom(a, BLOCK_ORDER);

	REQUIRE(huge);
	index = block_of_page(huge);
	mm_page_free(&a->mm, huge);
	if (pcp_count(&a->mm, zone) != BLOCK_FRAMES)
		SKIP("so many CPUs share the arena that none may hold a huge page");
	tag = shootdown_tag();
	block_at(&a->mm, index)->tag = tag;
	/* With PAGE_NOFLUSH the call may not wait for the round. */
	EXPECT(mm_page_alloc(&a->mm, BLOCK_ORDER, USE_MOVABLE, PAGE_NODE | PAGE_NOFLUSH,
			     a->options.nodes) != huge);
	EXPECT(shootdown_done() < tag);
	huge = take_phantom(a, BLOCK_ORDER);
	/* The page went back to the zone's list and comes from there. */
	EXPECT(huge && page_to_pfn(huge) >> BLOCK_ORDER == index);
	EXPECT(shootdown_done() >= tag);
	mm_page_free(&a->mm, huge);
	tag = shootdown_tag();
	block_at(&a->mm, index)->tag = tag;
	EXPECT(take_phantom(a, BLOCK_ORDER) == huge); /* the page comes from the CPU's own list */
	EXPECT(shootdown_done() >= tag);
	mm_page_free(&a->mm, huge);
}

/*
 * A CPU that holds nothing frees a huge page. After it has read the type of the page's block,
 * another CPU isolates the block and drains. The drain passes over this CPU, because it is not
 * marked as holding anything. The type that was read is out of date then.
 */
TEST_ARENA(mm_pcp, a_huge_page_whose_block_is_isolated_meanwhile_is_not_kept, arena_usual())
{
	struct isolation token;
	struct block_word word;
	struct pcp *pcp;
	u32 index;
	bool kept;
	struct zone *zone = arena_phantom_zone(a);
	struct page *huge = take_phantom(a, BLOCK_ORDER);

	REQUIRE(huge);
	index = block_of_page(huge);
	pcp_drain_all(&a->mm);
	EXPECT(!pcp_of_this_cpu(&a->mm)->holding);
	word = block_look_at(&a->mm, index);
	REQUIRE(isolate_block(zone, index, &token) == 0);
	pcp_drain_all(&a->mm);
	pcp = pcp_enter(&a->mm);
	kept = pcp_free_huge(zone, pcp_mine(zone), index, word);
	pcp_leave(&a->mm, pcp);
	REQUIRE(!kept);
	EXPECT_EQ(pcp_count(&a->mm, zone), 0);
	isolate_undo(zone, &token);
	EXPECT(arena_accounted(a));
	mm_page_free(&a->mm, huge); /* the same without an isolation */
	EXPECT_EQ(pcp_count(&a->mm, zone), pcp_mine(zone)->high >= BLOCK_FRAMES ? BLOCK_FRAMES : 0);
}

/* ---- a CPU without memory gets the pages that another CPU holds ---- */

static struct page *bulk[8192];

static void hold_all(void *arg)
{
	struct arena *a = arg;
	const size_t got =
		mm_page_alloc_bulk(&a->mm, USE_MOVABLE, 0, NODE_NONE, bulk, ARRAY_LEN(bulk));

	EXPECT(got > 0 && got < ARRAY_LEN(bulk));
	mm_page_free_bulk(&a->mm, bulk, got);
	if (pcp_count(&a->mm, arena_zone(a, 0)) > 0)
		return;
	/* the last page was one too many, and all were given back: fetch and hold some again */
	bulk[0] = mm_page_alloc(&a->mm, 0, USE_MOVABLE, 0, NODE_NONE);
	if (bulk[0])
		mm_page_free(&a->mm, bulk[0]);
}

TEST_ARENA(mm_pcp, memory_held_by_other_cpus_is_found_before_giving_up,
	   cpus_needed(2) ? arena_borrow(MIB(16)) : NULL)
{
	const cpu_t other = cpus_find_other();

	REQUIRE(work_start(other, hold_all, a) == 0);
	work_wait(other, 0);
	EXPECT(pcp_count(&a->mm, arena_zone(a, 0)) > 0);
	while (mm_page_alloc(&a->mm, 0, USE_MOVABLE, 0, NODE_NONE))
		;
	EXPECT_EQ(pcp_count(&a->mm, arena_zone(a, 0)), 0);
}

/* ---- CPUs that begin to hold pages while another CPU disables lists ---- */

static struct disabling {
	struct arena *a;
	struct provoke until;
	u32 one, held, turns;
} disabling;

/*
 * After each drain the other CPUs begin to hold pages again. At that moment one of them may be
 * mistaken for a CPU that holds nothing.
 */
static void hold_or_disable(void *arg)
{
	struct disabling *d = arg;
	struct zone *zone = arena_phantom_zone(d->a);
	const bool disables = atomic_fetch_add(&d->one, 1) == 0;

	while (provoke_goes_on(&d->until)) {
		struct page *page = disables ? NULL : take_phantom(d->a, 0);

		if (page)
			mm_page_free(&d->a->mm, page);
		if (!disables)
			continue;
		pcp_disable(zone);
		for (unsigned i = 0; i < 20; i++)
			if (pcp_count(&d->a->mm, zone) != 0)
				atomic_fetch_add(&d->held, 1);
		pcp_enable(zone);
		d->turns++;
	}
}

TEST_ARENA(mm_pcp, no_cpu_begins_to_hold_what_is_disabled, arena_usual())
{
	disabling = (struct disabling){.a = a, .until = provoke_begin()};
	cpus_run_together(hold_or_disable, &disabling);
	EXPECT_EQ(disabling.held, 0);
	cpus_note_met(disabling.turns, "turns");
}

/* ---- one CPU that begins to hold pages, and one that disables lists, once ---- */

enum { MEETINGS = 4 };

static struct meeting {
	struct arena *a;
	cpu_t holds, disables;
	u32 freed;
} meeting;

/*
 * The other CPU begins to hold pages before the lists are disabled, and is then asked to give them
 * back, or later, and then finds them disabled. In between it must not be overlooked.
 */
static void hold_or_disable_once(void *arg)
{
	struct meeting *m = arg;
	struct zone *zone = arena_phantom_zone(m->a);

	if (cpu_id() == m->disables) {
		pcp_disable(zone);
		CPUS_AWAIT(atomic_load_acquire(&m->freed));
		EXPECT_EQ(pcp_count(&m->a->mm, zone), 0);
		pcp_enable(zone);
	} else if (cpu_id() == m->holds) {
		struct page *page = take_phantom(m->a, 0);

		if (page)
			mm_page_free(&m->a->mm, page);
		atomic_fetch_add(&m->freed, 1);
	}
}

TEST_ARENA(mm_pcp, a_cpu_that_begins_to_hold_is_seen_or_sees_that_it_must_not, arena_for_cpus(2))
{
	const cpu_t other = cpus_find_other();
	/* The rest of its block is free, so no CPU splits a block and looks again after that. */
	struct page *kept = take_phantom(a, 0);

	REQUIRE(kept);
	meeting = (struct meeting){.a = a};
	for (unsigned i = 0; i < MEETINGS; i++) {
		meeting.holds = i % 2 ? other : cpu_id();
		meeting.disables = i % 2 ? cpu_id() : other;
		meeting.freed = 0;
		pcp_drain_all(&a->mm);
		cpus_run_together(hold_or_disable_once, &meeting);
	}
}

/* ---- CPUs that share drains ---- */

struct sharing {
	struct arena *a;
	u64 tag, unseen; /* drains that a CPU saw begun, but not the change */
	u32 parts, changed;
};

static void wait_for_drain(void *arg)
{
	const struct sharing *s = arg;

	pcp_drain_wait(&s->a->mm, s->tag);
}

static void disable_and_enable(void *arg)
{
	const struct sharing *s = arg;

	pcp_disable(arena_phantom_zone(s->a));
	pcp_enable(arena_phantom_zone(s->a));
}

TEST_ARENA(mm_pcp, cpus_that_wait_for_one_drain_share_it_and_all_that_disable_count, arena_usual())
{
	struct sharing s = {.a = a};

	s.tag = pcp_drain_tag(&a->mm);
	cpus_run_together(wait_for_drain, &s);
	EXPECT_EQ(a->mm.drains, s.tag);
	cpus_run_together(disable_and_enable, &s);
	EXPECT_EQ(arena_phantom_zone(a)->pcp_disabled, 0);
}

/* One CPU changes something and asks for the tag; the others drain and look. */
static void change_or_drain(void *arg)
{
	struct sharing *s = arg;
	struct mm *mm = &s->a->mm;
	u64 drains;

	if (atomic_fetch_add(&s->parts, 1) == 0) {
		atomic_store_relaxed(&s->changed, 1);
		atomic_store_release(&s->tag, pcp_drain_tag(mm));
		return;
	}
	pcp_drain_all(mm);
	drains = atomic_load_acquire(&mm->drains);
	if (!atomic_load_acquire(&s->changed))
		atomic_store_relaxed(&s->unseen, drains);
}

TEST_ARENA(mm_pcp, a_cpu_that_sees_a_drain_begun_sees_what_was_changed_before_its_tag,
	   arena_borrow(MIB(16)))
{
	struct sharing s = {.a = a};

	cpus_run_together(change_or_drain, &s);
	EXPECT(s.unseen < s.tag);
}
