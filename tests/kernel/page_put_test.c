/*
 * Dropping references. The page goes back to where it belongs, whichever code drops the last
 * reference, and code that has dropped another reference does not look at the page any more. Pool
 * pages are the hard case, because their holder gives them back while movers hold them for a
 * moment.
 */

#include "mm/hugetlb/pool_move.h"
#include "tests/kernel/mm_test.h"
#include "tests/kernel/provoke.h"

enum { SPINS = 1000 };

/* ---- the last reference ---- */

TEST_ARENA(mm_pool, a_page_goes_back_with_its_last_reference_whoever_puts_it, arena_borrow(MIB(16)))
{
	struct page *page;

	EXPECT_EQ(pool_grow(&a->pool, hvo_on(), 1), 1);
	page = pool_page_take(&a->pool, 0, POOL_ANY);
	REQUIRE(page);
	page_get(page);
	pool_page_give(&a->pool, page);
	EXPECT_EQ(a->pool.in_use, 1); /* the other reference keeps the page in use */
	EXPECT(!pool_page_take(&a->pool, 0, POOL_ANY));
	mm_page_put(&a->mm, page);
	pool_expect_counts(&a->pool, 1, 0, 0);
	page = pool_page_take(&a->pool, 0, POOL_ANY);
	REQUIRE(page);
	mm_page_put(&a->mm, page + 5); /* through a tail */
	EXPECT_EQ(a->pool.free, 1);
}

/* ---- a page that moves ---- */

/* One page behind a lock, like an entry in a holder's table. */
static struct slot {
	struct arena *a;
	struct spinlock lock;
	struct page *page;
	u32 index; /* block of the page that was in the slot last; atomic */
	struct provoke until;
	u32 turn, gave, moved, held;
	bool waits; /* the holder waits for a mover before it gives the page back */
} slot;

static int slot_move(struct page *from, struct page *to)
{
	int err = -EBUSY;

	spin_lock(&slot.lock);
	if (slot.page == from) {
		page_copy(to, from);
		slot.page = to;
		slot.moved++;
		err = 0;
	}
	spin_unlock(&slot.lock);
	return err;
}

static const struct page_mover slot_mover = {.name = "a slot", .move = slot_move};

static struct arena *borrow_slot(u64 bytes, u64 pages)
{
	struct arena *a = arena_borrow(bytes);

	if (!a)
		return NULL;
	pool_makes_on_demand();
	slot = (struct slot){.a = a, .lock = SPINLOCK_INIT(LOCK_LEAF), .index = BLOCK_NONE};
	EXPECT_EQ(pool_grow(&a->pool, hvo_on(), pages), pages);
	return a;
}

static bool slot_fill(void)
{
	struct page *page = pool_page_take(&slot.a->pool, 0, POOL_ANY);

	if (!page)
		return false;
	spin_lock(&slot.lock);
	slot.page = page;
	spin_unlock(&slot.lock);
	mm_page_set_movable(&slot.a->mm, page, &slot_mover);
	atomic_store_release(&slot.index, block_of_page(page));
	return true;
}

static void slot_empty(void)
{
	struct page *page;

	spin_lock(&slot.lock);
	page = slot.page;
	slot.page = NULL;
	spin_unlock(&slot.lock);
	pool_page_give(&slot.a->pool, page);
}

/*
 * Another mover has a reference to the page that moves. The page leaves the pool when that
 * reference is dropped, and the pool has neither a page more nor a page less than before.
 */
TEST_ARENA(mm_pool, a_page_that_moved_while_another_held_it_leaves_the_pool,
	   borrow_slot(MIB(16), 2))
{
	struct migrate_stats stats = {0};
	struct page *old;

	REQUIRE(slot_fill());
	old = slot.page;
	EXPECT(page_get_movable(old));
	EXPECT_EQ(pool_move_page(&a->mm, block_of_page(old), BLOCK_ORDER, &stats), -EBUSY);
	EXPECT_EQ(slot.moved, 1);
	EXPECT(slot.page != old);
	pool_page_give(&a->pool, old);
	pool_expect_counts(&a->pool, 2, 1, 0);
	slot_empty();
	pool_expect_counts(&a->pool, 2, 0, 0);
}

/*
 * Empty a range over the page that was taken last. The page moves, or its holder gives it back
 * meanwhile.
 */
static void move_without_end(void)
{
	while (provoke_goes_on(&slot.until) && !test_failed()) {
		const u32 index = atomic_load_acquire(&slot.index);

		if (index != BLOCK_NONE &&
		    mm_contig_alloc_range(&slot.a->mm, block_pfn(index), BLOCK_FRAMES) == 0)
			mm_contig_free_range(&slot.a->mm, block_pfn(index), BLOCK_FRAMES);
	}
}

/* Wait until a mover holds the page, or for a while. No page may leave the pool meanwhile. */
static void await_mover(const struct page *page)
{
	for (unsigned i = 0; i < SPINS && atomic_load_relaxed(&page->refcount) == 1; i++)
		cpu_relax();
}

static void give_without_end(void)
{
	while (provoke_goes_on(&slot.until) && !test_failed()) {
		if (!slot_fill())
			continue; /* one of the pool's pages is being replaced at this moment */
		if (slot.waits)
			await_mover(slot.page);
		slot_empty();
		slot.gave++;
	}
}

/*
 * Act as a mover whose page does not move, and do nothing else, so that no page ever leaves the
 * pool.
 */
static void hold_without_end(void)
{
	while (provoke_goes_on(&slot.until) && !test_failed()) {
		const u32 index = atomic_load_acquire(&slot.index);
		struct page *page = index == BLOCK_NONE ? NULL : block_page(&slot.a->mm, index);

		if (!page || !page_get_movable(page))
			continue;
		for (unsigned i = 0; i < SPINS && atomic_load_relaxed(&page->refcount) > 1; i++)
			cpu_relax(); /* the holder is about to give the page back */
		pool_page_give(&slot.a->pool, page);
		atomic_fetch_add(&slot.held, 1);
	}
}

static void move_or_give(void *unused)
{
	if (atomic_fetch_add(&slot.turn, 1) == 0)
		give_without_end();
	else
		move_without_end();
}

/* Only one CPU holds pages, because two would wait for each other. */
static void hold_or_give(void *unused)
{
	const u32 turn = atomic_fetch_add(&slot.turn, 1);

	if (turn == 0)
		give_without_end();
	else if (turn == 1)
		hold_without_end();
}

/*
 * Provoke a mover to drop the last reference between the moment when the holder drops its own and
 * the holder's next step.
 */
static void check_giving(struct arena *a, call_fn *fn, bool waits)
{
	slot.waits = waits;
	slot.until = provoke_begin();
	cpus_run_together(fn, NULL);
	cpus_note_met(slot.gave, "pages given");
	pool_expect_counts(&a->pool, 4, 0, 0);
}

TEST_ARENA(mm_pool, a_page_given_back_while_movers_hold_it_is_looked_at_no_more,
	   cpus_needed(2) ? borrow_slot(MIB(64), 4) : NULL)
{
	check_giving(a, hold_or_give, true);
}

TEST_ARENA(mm_pool, a_page_given_back_while_ranges_are_emptied_is_looked_at_no_more,
	   cpus_needed(2) ? borrow_slot(MIB(64), 4) : NULL)
{
	check_giving(a, move_or_give, false);
}

/* ---- pages that are not the pool's ---- */

/* Give the page to `pool`. The call must be refused and change no count. */
static void refuse(struct arena *a, struct pool *pool, struct page *page)
{
	const u64 before = page_misuses();

	pool_page_give(pool, page);
	EXPECT_EQ(page_misuses(), before + 1);
	EXPECT_EQ(a->giga.in_use, 0);
	EXPECT_EQ(a->giga.pages, 0);
}

TEST_ARENA(mm_pool, a_page_that_is_not_the_pools_is_refused_by_name, arena_borrow(MIB(16)))
{
	struct page *page, *plain, *machine = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	u32 bare = arena_block(a);
	u64 before;

	test_option("debug.bad_free", "keep");
	EXPECT_EQ(pool_grow(&a->pool, hvo_on(), 1), 1);
	page = pool_page_take(&a->pool, 0, POOL_ANY);
	plain = mm_page_alloc(&a->mm, BLOCK_ORDER, USE_UNMOVABLE, 0, 0);
	REQUIRE(page && plain && machine);
	while (block_at(&a->mm, bare) && block_look_at(&a->mm, bare).state != BLOCK_BARE)
		bare++;
	refuse(a, &a->giga, page); /* a page of the other size */
	refuse(a, &a->giga, plain);
	refuse(a, &a->pool, plain);    /* a page of no pool */
	refuse(a, &a->pool, page + 7); /* a tail */
	refuse(a, &a->pool, machine);  /* a page of another machine */
	refuse(a, &a->pool, NULL);
	if (block_at(&a->mm, bare)) /* mapped sections have no bare blocks */
		refuse(a, &a->pool, block_page(&a->mm, bare));
	EXPECT_EQ(a->pool.in_use, 1);
	EXPECT_EQ(page->refcount, 1);
	EXPECT_EQ(plain->refcount, 1);
	before = page_misuses();
	pool_page_give(&a->pool, page);
	EXPECT_EQ(page_misuses(), before);
	refuse(a, &a->pool, page); /* a second time */
	EXPECT_EQ(a->pool.free, 1);
	EXPECT_EQ(a->pool.in_use, 0);
	mm_page_free(&a->mm, plain);
	page_free(machine);
}
