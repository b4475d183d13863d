/*
 * CPUs read struct pages of any block through page_peek() while pools grow, shrink and are demoted.
 * Each struct page that they read is absent or right, never anything else.
 */
#include <arch/clock.h>

#include "mm/hvo/hvo_unshare.h"
#include "mm/page/page_alloc.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/pool_check.h"
#include "tests/kernel/random.h"
#include "tests/kernel/modes.h"

enum { TURNS = 60, READERS_MAX = 31, READ_BATCH = 64, READ_S = 2 };

struct readers {
	const struct mm *mm;
	u32 first, blocks;  /* the blocks that are read */
	u32 held;           /* a 2 MiB page that is in use all the time, or BLOCK_NONE */
	bool split_allowed; /* struct pages of small pages are right, too */
	bool giga_allowed;  /* tails of 1 GiB pages are right, too */
	u32 begun, stop;
	u64 seen, absent, wrong, of_held, vanished;
	u64 example[3]; /* frame, mask and flags of the first wrong struct page */
};

/*
 * Is this a tail of a 2 MiB or 1 GiB page or, where pages may be private, a struct page of its own?
 * The words may have been read at two moments, so each is judged by itself.
 */
static bool tail_is_right(const struct readers *r, const struct page *page)
{
	const bool huge_mask = page->head_mask == head_mask_of(BLOCK_ORDER) ||
			       (r->giga_allowed && page->head_mask == head_mask_of(GIGA_ORDER));
	const bool tail = page->flags == PAGE_TAIL;

	if (page->refcount != 0)
		return false;
	if (!r->split_allowed)
		return huge_mask && tail;
	return (huge_mask || page->head_mask == ~0ULL) && (tail || page->flags == 0);
}

static void note_wrong(struct readers *r, pfn_t pfn, const struct page *page)
{
	if (atomic_fetch_add(&r->wrong, 1) > 0)
		return;
	r->example[0] = pfn;
	r->example[1] = page->head_mask;
	r->example[2] = page->flags;
}

/* Read any tail, but never the first struct page of a block, which may be a head in any state. */
static void read_any(struct readers *r, u64 *state)
{
	const u64 random = next_random(state);
	const pfn_t pfn = block_pfn(r->first + (u32)((random >> 16) % r->blocks)) + 1 +
			  random % (BLOCK_FRAMES - 1);
	struct page copy;

	if (!mm_page_peek(r->mm, pfn, &copy)) {
		atomic_add_relaxed(&r->absent, 1);
		return;
	}
	atomic_add_relaxed(&r->seen, 1);
	if (!tail_is_right(r, &copy))
		note_wrong(r, pfn, &copy);
}

/*
 * Read a tail of the page in use. It must exist and be right, whatever happens to its neighbours.
 */
static void read_held(struct readers *r, u64 *state)
{
	const u64 i = 1 + next_random(state) % (BLOCK_FRAMES - 1);
	struct page copy;

	if (r->held == BLOCK_NONE)
		return;
	if (!mm_page_peek(r->mm, block_pfn(r->held) + i, &copy)) {
		atomic_fetch_add(&r->vanished, 1);
		return;
	}
	atomic_add_relaxed(&r->of_held, 1);
	if (copy.head_mask != head_mask_of(BLOCK_ORDER) || copy.flags != PAGE_TAIL ||
	    copy.refcount != 0)
		note_wrong(r, block_pfn(r->held) + i, &copy);
}

static void read_tails(void *arg)
{
	struct readers *r = arg;
	u64 state = 0x9e3779b97f4a7c15ULL + cpu_id();

	atomic_fetch_add(&r->begun, 1);
	while (!atomic_load_acquire(&r->stop)) {
		for (unsigned i = 0; i < READ_BATCH; i++) {
			read_any(r, &state);
			read_held(r, &state);
		}
		cpu_relax(); /* where one CPU runs at a time, this one's turn ends */
	}
}

static void readers_start(struct readers *r)
{
	const cpu_t started = cpus_start_idle(read_tails, r, READERS_MAX);

	CPUS_AWAIT(atomic_load_acquire(&r->begun) == started);
}

static void readers_stop(struct readers *r)
{
	atomic_store_release(&r->stop, 1);
	cpus_await_work();
	cpus_note_met(r->seen, "tails that readers saw");
	EXPECT_EQ(r->vanished, 0);
	if (r->wrong > 0)
		test_fail(__FILE__, __LINE__,
			  "%llu wrong tails, the first at frame %llx: mask %llx, flags %llx",
			  r->wrong, r->example[0], r->example[1], r->example[2]);
}

/*
 * Have readers seen enough? The limit is a number of turns and of reads, but no longer than some
 * seconds.
 */
static bool seen_enough(const struct readers *r, unsigned turn, u64 until)
{
	return (turn >= TURNS && atomic_load_relaxed(&r->seen) > 20000) || clock_ns() > until;
}

static void check_readers(const char *name, struct arena *a, node_t node, u32 first, u32 blocks,
			  u64 pages)
{
	const struct hvo_mode *mode = hvo_mode_find(name);
	struct readers r = {.first = first, .blocks = blocks, .split_allowed = mode->mapped};
	const u64 until = clock_ns() + READ_S * NS_PER_S;
	struct page *page;

	r.mm = &a->mm;
	EXPECT_EQ(pool_grow_on(&a->pool, mode, node, 1), 1);
	REQUIRE((page = pool_page_take(&a->pool, node, POOL_ANY)));
	r.held = block_of_page(page);
	readers_start(&r);
	for (unsigned turn = 0; !seen_enough(&r, turn, until); turn++) {
		EXPECT_EQ(pool_grow_on(&a->pool, mode, node, pages), pages);
		EXPECT_EQ(pool_shrink_on(&a->pool, mode, node, pages), pages);
		if (!mode->mapped)
			hvo_bare_free_huge(arena_zone(a, node), ~0ULL);
	}
	readers_stop(&r);
	pool_page_give(&a->pool, page);
	EXPECT_EQ(pool_shrink(&a->pool, mode, 1), 1);
	pool_expect_consistent(&a->pool);
}

TEST_ARENA(mm_pool, readers_see_right_tails_or_none_with_hvo_on,
	   cpus_needed(2) ? arena_borrow(MIB(16), .phantom = GIB(1)) : NULL)
{
	check_readers("on", a, 1, arena_phantom_block(a), 2 * SECTION_BLOCKS, 100);
}

TEST_ARENA(mm_pool, readers_see_right_tails_batched, cpus_needed(2) ? arena_borrow(MIB(256)) : NULL)
{
	check_readers("batched", a, 0, arena_block(a) + SECTION_BLOCKS, SECTION_BLOCKS, 24);
}

/*
 * Wait until one of the readers has read something more, because a busy host runs few CPUs at a
 * time.
 */
static void let_them_look(const struct readers *r, u64 until)
{
	const u64 before = atomic_load_relaxed(&r->seen);

	while (atomic_load_relaxed(&r->seen) == before && clock_ns() < until)
		cpu_relax();
}

/* Take a GiB through all its forms: bare, a 1 GiB page, 512 pages of 2 MiB, bare. */
static void turn_a_gib(struct arena *a, const struct readers *r, u64 until)
{
	EXPECT_EQ(pool_grow_on(&a->giga, hvo_on(), 1, 1), 1);
	let_them_look(r, until);
	EXPECT_EQ(pool_demote(&a->giga, &a->pool, hvo_on(), 1), 1);
	EXPECT_EQ(pool_shrink_on(&a->pool, hvo_on(), 1, GIB_BLOCKS), GIB_BLOCKS);
	EXPECT_EQ(hvo_bare_free_huge(arena_zone(a, 1), ~0ULL), GIB_BLOCKS);
}

TEST_ARENA(mm_giga, readers_see_right_tails_or_none_through_demotion,
	   cpus_needed(2) ? arena_borrow(MIB(16), .phantom = GIB(1)) : NULL)
{
	struct readers r = {.mm = &a->mm,
			    .first = arena_phantom_block(a),
			    .held = BLOCK_NONE,
			    .blocks = GIB_BLOCKS,
			    .giga_allowed = true};
	const u64 until = clock_ns() + READ_S * NS_PER_S;

	readers_start(&r);
	for (unsigned turn = 0; turn == 0 || !seen_enough(&r, TURNS, until); turn++)
		turn_a_gib(a, &r, until);
	readers_stop(&r);
}
