/*
 * CPUs read struct pages of any block through page_peek() while pools grow, shrink and are demoted.
 * Each struct page that they read is absent or right, never anything else.
 */
#include "tests/kernel/mm_test.h"
#include "tests/kernel/provoke.h"
#include "tests/kernel/random.h"

#ifdef HOST_EXPLORE
enum { READERS_MAX = 1, READ_BATCH = 1 }; /* the schedule decides when it reads */
#else
enum { READERS_MAX = 31, READ_BATCH = 64 };
#endif

struct readers {
	const struct mm *mm;
	u32 first, blocks;  /* the blocks that are read */
	u32 held;           /* a 2 MiB page that is in use all the time, or BLOCK_NONE */
	bool split_allowed; /* struct pages of small pages are right, too */
	bool giga_allowed;  /* tails of 1 GiB pages are right, too */
	u32 begun, stop;
	u64 seen, wrong, vanished;
	pfn_t pfn; /* of the first wrong struct page */
	struct page example;
};

/*
 * Is this a tail of a 2 MiB or 1 GiB page or, where pages may be private, a struct page of its own?
 * The words may have been read at two moments, so each is judged by itself.
 */
static bool tail_is_right(const struct readers *r, u32 block, const struct page *page)
{
	const bool huge_mask = page->head_mask == head_mask_of(BLOCK_ORDER) ||
			       (r->giga_allowed && page->head_mask == head_mask_of(GIGA_ORDER));
	const bool tail = page->flags == PAGE_TAIL;

	if (page->refcount != 0)
		return false;
	if (!r->split_allowed || block == r->held)
		return huge_mask && tail;
	return (huge_mask || page->head_mask == ~0ULL) && (tail || page->flags == 0);
}

/*
 * Read any tail of the block, but never the first struct page, which may be a head in any state.
 * Those of the page in use must exist and be right, whatever happens to its neighbours.
 */
static void read_tail(struct readers *r, u32 block, u64 random)
{
	const pfn_t pfn = block_pfn(block) + 1 + random % (BLOCK_FRAMES - 1);
	struct page copy;

	if (!mm_page_peek(r->mm, pfn, &copy)) {
		if (block == r->held)
			atomic_fetch_add(&r->vanished, 1);
		return;
	}
	atomic_add_relaxed(&r->seen, 1);
	if (tail_is_right(r, block, &copy) || atomic_fetch_add(&r->wrong, 1) > 0)
		return;
	r->pfn = pfn;
	r->example = copy;
}

static void read_tails(void *arg)
{
	struct readers *r = arg;
	u64 state = 0x9e3779b97f4a7c15ULL + cpu_id();

	atomic_fetch_add(&r->begun, 1);
	while (!atomic_load_acquire(&r->stop)) {
		for (unsigned i = 0; i < READ_BATCH; i++) {
			const u64 random = next_random(&state);

			read_tail(r, r->first + (u32)((random >> 16) % r->blocks), random);
			if (r->held != BLOCK_NONE)
				read_tail(r, r->held, next_random(&state));
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
			  "%llu wrong tails, the first at frame %llx: mask %llx, flags %x",
			  r->wrong, r->pfn, r->example.head_mask, r->example.flags);
}

static void check_readers(const char *name, struct arena *a, node_t node, u32 first, u32 blocks,
			  u64 pages)
{
	const struct hvo_mode *mode = hvo_mode_find(name);
	struct readers r = {
		.mm = &a->mm, .first = first, .blocks = blocks, .split_allowed = mode->mapped};
	const struct provoke p = provoke_begin();
	struct page *page;

	EXPECT_EQ(pool_grow_on(&a->pool, mode, node, 1), 1);
	REQUIRE((page = pool_page_take(&a->pool, node, POOL_ANY)));
	r.held = block_of_page(page);
	readers_start(&r);
	for (unsigned turn = 0; turn < 2 || provoke_goes_on(&p); turn++) {
		EXPECT_EQ(pool_grow_on(&a->pool, mode, node, pages), pages);
		EXPECT_EQ(pool_shrink_on(&a->pool, mode, node, pages), pages);
		if (!mode->mapped)
			hvo_bare_free_huge(arena_zone(a, node), ~0ULL);
	}
	readers_stop(&r);
	pool_page_give(&a->pool, page);
	EXPECT_EQ(pool_shrink(&a->pool, mode, 1), 1);
	EXPECT(account_pool(&a->pool));
}

TEST_ARENA(mm_pool, readers_see_right_tails_or_none_with_hvo_on, arena_for_cpus(2))
{
	check_readers("on", a, 1, arena_phantom_block(a), 2 * SECTION_BLOCKS, 100);
}

TEST_ARENA(mm_pool, readers_see_right_tails_batched, cpus_needed(2) ? arena_borrow(MIB(256)) : NULL)
{
	check_readers("batched", a, 0, arena_block(a) + SECTION_BLOCKS, SECTION_BLOCKS, 24);
}

/* Wait until a reader has read something more, because a busy host runs few CPUs at a time. */
static void let_them_look(const struct readers *r, const struct provoke *p)
{
	const u64 before = atomic_load_relaxed(&r->seen);

	while (atomic_load_relaxed(&r->seen) == before && provoke_goes_on(p))
		cpu_relax();
}

TEST_ARENA(mm_giga, readers_see_right_tails_or_none_through_demotion, arena_for_cpus(2))
{
	struct readers r = {.mm = &a->mm,
			    .first = arena_phantom_block(a),
			    .held = BLOCK_NONE,
			    .blocks = GIB_BLOCKS,
			    .giga_allowed = true};
	const struct provoke p = provoke_begin();
	bool goes_on;

	readers_start(&r);
	do { /* all forms of a GiB: bare, a 1 GiB page, 512 pages of 2 MiB, bare */
		EXPECT_EQ(pool_grow_on(&a->giga, hvo_on(), 1, 1), 1);
		let_them_look(&r, &p);
		EXPECT_EQ(pool_demote(&a->giga, &a->pool, hvo_on(), 1), 1);
		goes_on = provoke_goes_on(&p);
		if (!goes_on)
			readers_stop(&r);
		EXPECT_EQ(pool_shrink_on(&a->pool, hvo_on(), 1, GIB_BLOCKS), GIB_BLOCKS);
		EXPECT_EQ(hvo_bare_free_huge(arena_zone(a, 1), ~0ULL), GIB_BLOCKS);
	} while (goes_on);
}
