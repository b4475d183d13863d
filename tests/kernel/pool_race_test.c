/*
 * Pools that all CPUs use at once: they are resized in both directions, and pages are taken and
 * given back. pool_readers_test.c has the CPUs that only read.
 */
#include "mm/hugetlb/pool_use.h"
#include "mm/page/page_check.h"
#include "tests/kernel/mm_test.h"
#include "tests/kernel/random.h"

enum { TURNS = 60, HELD = 3, OVERCOMMIT = 6 };

struct users {
	struct arena *a;
	const struct hvo_mode *mode;
	u64 most;
	u32 taken, mixed_up, miscounted;
};

/* The counts agree whenever a CPU has the lock, whatever the other CPUs are doing. */
static void check_counts(struct users *u)
{
	struct pool *pool = &u->a->pool;

	spin_lock(&pool->lock);
	if (pool->surplus > pool->pages || pool->pages != pool->free + pool->in_use ||
	    pool->reserved > pool->free)
		atomic_fetch_add(&u->miscounted, 1);
	spin_unlock(&pool->lock);
}

/* Take a page and mark it as this CPU's. */
static struct page *take_marked(struct users *u, u64 mark)
{
	struct page *page = pool_page_take(&u->a->pool, 0, POOL_ANY);

	check_counts(u);
	if (!page)
		return NULL;
	atomic_fetch_add(&u->taken, 1);
	page->private[0] = mark;
	return page;
}

static void give_marked(struct users *u, struct page *page, u64 mark)
{
	if (!page)
		return;
	if (page->private[0] != mark || page->refcount != 1 || page_head(page + 511) != page)
		atomic_fetch_add(&u->mixed_up, 1);
	pool_page_give(&u->a->pool, page);
	check_counts(u);
}

static void use_and_resize(void *arg)
{
	struct users *u = arg;
	u64 state = 88172645463325252ULL + cpu_id();

	for (unsigned turn = 0; turn < TURNS; turn++) {
		const u64 mark = next_random(&state);
		const bool promised = pool_reserve(&u->a->pool, 1) == 0;
		struct page *held[HELD];

		for (u64 i = 0; i < HELD; i++)
			held[i] = take_marked(u, mark + i);
		if (promised)
			pool_unreserve(&u->a->pool, 1);
		pool_resize(&u->a->pool, u->mode, next_random(&state) % u->most);
		check_counts(u);
		for (u64 i = 0; i < HELD; i++)
			give_marked(u, held[i], mark + i);
	}
}

static void check_users(const char *mode, struct arena *a)
{
	struct users u = {.a = a, .mode = hvo_mode_find(mode), .most = 12};

	a->pool.overcommit = OVERCOMMIT;
	pool_resize(&a->pool, u.mode, 4);
	cpus_run_together(use_and_resize, &u);
	cpus_note_met(u.taken, "pages taken");
	EXPECT_EQ(u.mixed_up, 0);
	EXPECT_EQ(u.miscounted, 0);
	EXPECT_EQ(a->pool.in_use, 0);
	EXPECT_EQ(a->pool.reserved, 0);
	EXPECT(arena_accounted(a));
	/* whatever the race left, the counts are exact again */
	EXPECT_EQ(pool_resize(&a->pool, u.mode, 5), 5);
	EXPECT_EQ(a->pool.pages, 5);
	EXPECT_EQ(pool_resize(&a->pool, u.mode, 0), 0);
	EXPECT_EQ(a->pool.pages, 0);
}

TEST_ARENA(mm_pool, all_cpus_resize_it_with_hvo_on, arena_usual())
{
	check_users("on", a);
}

TEST_ARENA(mm_pool, all_cpus_resize_it_batched, arena_borrow(MIB(256)))
{
	check_users("batched", a);
}

/* ---- pages that are half made ---- */

static void take_one(void *arg)
{
	struct users *u = arg;
	struct page *page = pool_page_take(&u->a->pool, 0, POOL_ANY);

	atomic_store_release(&u->taken, page != NULL);
	if (page)
		pool_page_give(&u->a->pool, page);
}

/*
 * Is a surplus page being made, or counted already? The lock is only tried, because the caller
 * holds a zone's lock, which ranks below the pool's.
 */
static bool is_begun(struct pool *pool)
{
	bool begun;

	if (!spin_trylock(&pool->lock))
		return false;
	begun = pool->making + pool->surplus > 0;
	if (begun) {
		EXPECT_EQ(pool->making, 1);
		EXPECT_EQ(pool->surplus, 0);
		EXPECT_EQ(pool->pages, 0);
	}
	spin_unlock(&pool->lock);
	return begun;
}

/*
 * A CPU is stopped in the middle of making a surplus page, because it cannot get the memory. No
 * page is counted before it exists.
 */
TEST_ARENA(mm_pool, no_surplus_is_counted_before_its_page_is_there,
	   /* only one zone has blocks to give */
	   cpus_needed(2) ? arena_borrow(MIB(2), .phantom = GIB(1)) : NULL)
{
	const cpu_t other = cpus_find_other();
	struct users u = {.a = a};
	struct pool *pool = &a->pool;
	struct zone *zone = arena_phantom_zone(a);

	pool->overcommit = 1;
	spin_lock(&zone->lock);
	EXPECT_EQ(work_start(other, take_one, &u), 0);
	CPUS_WAIT_FOR(is_begun(pool), other, "a surplus page to be promised");
	spin_unlock(&zone->lock);
	work_wait(other, 0);
	EXPECT(u.taken);
	EXPECT_EQ(pool->making, 0);
	EXPECT_EQ(pool->pages, 0);
}

/* ---- a promise that comes back with its page ---- */

struct giving {
	struct users u;
	struct page *promised, *other;
};

static void give_promised_or_take(void *arg)
{
	struct giving *g = arg;

	if (cpu_id() == 0)
		pool_page_give_promised(&g->u.a->pool, g->promised);
	else if (cpu_id() == 1)
		g->other = pool_page_take(&g->u.a->pool, 0, POOL_ANY);
	check_counts(&g->u);
}

/*
 * One of two free pages is promised to nobody all the time, so another CPU gets it, whenever it
 * looks.
 */
TEST_ARENA(mm_pool, a_promise_comes_back_at_once_with_its_page,
	   cpus_needed(2) ? arena_borrow(MIB(2), .phantom = GIB(1)) : NULL)
{
	struct giving g = {.u.a = a};

	EXPECT_EQ(pool_grow(&a->pool, hvo_on(), 2), 2);
	EXPECT_EQ(pool_reserve(&a->pool, 1), 0);
	REQUIRE((g.promised = pool_page_take(&a->pool, 0, POOL_RESERVED)));
	cpus_run_together(give_promised_or_take, &g);
	EXPECT_EQ(g.u.miscounted, 0);
	REQUIRE(g.other);
	pool_page_give(&a->pool, g.other);
	pool_unreserve(&a->pool, 1);
	pool_expect_counts(&a->pool, 2, 0, 0);
}

/* giving a page twice is a race by itself */
#if !defined(__SANITIZE_THREAD__) || defined(HOST_EXPLORE)

static void give_one_twice(void *arg)
{
	struct giving *g = arg;

	if (cpu_id() == 0)
		pool_page_give_promised(&g->u.a->pool, g->promised);
	else if (cpu_id() == 1)
		pool_page_give(&g->u.a->pool, g->promised);
}

/* A page that two CPUs give back at once is reported, as one is that a CPU gives back twice. */
TEST_ARENA(mm_pool, a_promised_page_that_is_given_twice_at_once_is_reported,
	   cpus_needed(2) ? arena_borrow(MIB(2), .phantom = GIB(1)) : NULL)
{
	struct giving g = {.u.a = a};
	u64 before;

	test_option("debug.bad_free", "keep");
	EXPECT_EQ(pool_grow(&a->pool, hvo_on(), 1), 1);
	EXPECT_EQ(pool_reserve(&a->pool, 1), 0);
	REQUIRE((g.promised = pool_page_take(&a->pool, 0, POOL_RESERVED)));
	before = page_misuses();
	cpus_run_together(give_one_twice, &g);
	EXPECT_EQ(page_misuses(), before + 1);
	EXPECT_EQ(g.promised->refcount, 0);
	pool_unreserve(&a->pool, 1);
	pool_expect_counts(&a->pool, 1, 0, 0);
}
#endif
