/*
 * An idle CPU is clearing the last free page of a pool. A CPU that wants the page must wait for it
 * instead of being refused, and one that shrinks the pool must not miss it. The case plays the CPU
 * that clears.
 */
#include <arch/clock.h>

#include "kernel/core/call.h"
#include "kernel/core/wait.h"
#include "kernel/run/test.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/hugetlb/prezero.h"
#include "mm/hvo/hvo_take.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/pool_check.h"
#include "tests/kernel/provoke.h"

static struct {
	struct pool *pool;
	struct page *page;
	int err;
	u64 gone;
	u32 began, done;
} want;

static void take_page(void *unused)
{
	(void)unused;
	atomic_store_release(&want.began, 1);
	want.page = pool_page_take(want.pool, 0, POOL_ANY);
	atomic_store_release(&want.done, 1);
}

static void reserve_page(void *unused)
{
	(void)unused;
	atomic_store_release(&want.began, 1);
	want.err = pool_reserve(want.pool, 1);
	atomic_store_release(&want.done, 1);
}

static void shrink(void *unused)
{
	(void)unused;
	atomic_store_release(&want.began, 1);
	want.gone = pool_shrink(want.pool, hvo_mode_find("on"), 1);
	atomic_store_release(&want.done, 1);
}

static void resize(void *unused)
{
	(void)unused;
	atomic_store_release(&want.began, 1);
	want.gone = 1 - pool_resize(want.pool, hvo_mode_find("on"), 0);
	atomic_store_release(&want.done, 1);
}

static void wait_for(const u32 *flag)
{
	struct wait wait = wait_begin(WAIT_GROWTH, "another CPU that wants a page");

	while (!atomic_load_acquire(flag))
		wait_spin(&wait, CPU_NONE);
}

/*
 * Run `fn` on another CPU while the only page is out to be cleared. The other CPU must not be
 * served before the page is back.
 */
static struct arena *want_while_it_is_cleared(call_fn *fn, bool cleared)
{
	const cpu_t other = cpus_find_other();
	struct arena *a;
	u32 index;

	if (other == CPU_NONE) {
		test_skip("needs two CPUs");
		return NULL;
	}
	a = arena_borrow(MIB(16));
	if (!a)
		return NULL;
	EXPECT_EQ(pool_grow(&a->pool, hvo_mode_find("on"), 1), 1);
	index = pool_take_to_clear(&a->pool, 0, 1);
	EXPECT(index != BLOCK_NONE);
	want.pool = &a->pool;
	want.page = NULL;
	want.err = -EAGAIN;
	want.began = want.done = 0;
	EXPECT_EQ(work_start(other, fn, NULL), 0);
	wait_for(&want.began);
	clock_delay_ns(NS_PER_MS);
	EXPECT_EQ(atomic_load_acquire(&want.done), 0);
	pool_give_cleared(&a->pool, index, cleared, 0);
	wait_for(&want.done);
	work_wait(other, 0);
	EXPECT_EQ(a->pool.clearing, 0);
	return a;
}

TEST(mm_pool, who_takes_a_page_waits_for_the_one_that_is_being_cleared)
{
	for (unsigned cleared = 0; cleared < 2; cleared++) {
		struct arena *a = want_while_it_is_cleared(take_page, cleared);

		if (!a)
			return;
		REQUIRE(want.page);
		EXPECT_EQ(a->pool.zeroed, 0); /* a page in use is no longer known to be zero */
		EXPECT_EQ(a->pool.in_use, 1);
		pool_page_give(&a->pool, want.page);
		pool_expect_consistent(&a->pool);
		EXPECT(arena_accounted(a));
		arena_return(a);
	}
}

TEST(mm_pool, a_promise_waits_for_the_page_that_is_being_cleared)
{
	struct arena *a = want_while_it_is_cleared(reserve_page, true);

	if (!a)
		return;
	EXPECT_EQ(want.err, 0);
	EXPECT_EQ(a->pool.reserved, 1);
	EXPECT_EQ(a->pool.zeroed, 1);
	pool_unreserve(&a->pool, 1);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_pool, a_pool_that_shrinks_misses_no_page_that_is_being_cleared)
{
	static call_fn *const ways[] = {shrink, resize};

	for (unsigned i = 0; i < 2 * ARRAY_LEN(ways); i++) {
		struct arena *a = want_while_it_is_cleared(ways[i / 2], i % 2);

		if (!a)
			return;
		EXPECT_EQ(want.gone, 1);
		EXPECT_EQ(a->pool.pages, 0);
		EXPECT_EQ(a->pool.surplus, 0);
		EXPECT_EQ(a->pool.holds, 0);
		EXPECT(arena_accounted(a));
		arena_return(a);
	}
}

/* Holds nest: idle CPUs take a page again when the last one ends. */
TEST(mm_pool, no_page_of_a_held_pool_is_cleared)
{
	struct arena *a = arena_borrow(MIB(16));
	u32 index;

	if (!a)
		return;
	EXPECT_EQ(pool_grow(&a->pool, hvo_mode_find("on"), 1), 1);
	prezero_hold(&a->pool);
	prezero_hold(&a->pool);
	prezero_release(&a->pool);
	EXPECT_EQ(pool_take_to_clear(&a->pool, 0, 1), BLOCK_NONE);
	prezero_release(&a->pool);
	index = pool_take_to_clear(&a->pool, 0, 1);
	REQUIRE(index != BLOCK_NONE);
	pool_give_cleared(&a->pool, index, false, 0);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

/* ---- a page that comes back between two looks ---- */

static struct tug {
	struct pool *pool;
	struct provoke until;
	u32 turn, refused, wanted, surplus;
} tug;

/* Take the page out and give it back, over and over, as an idle CPU that clears does. */
static void clear_without_end(void)
{
	while (provoke_goes_on(&tug.until)) {
		const u32 index = pool_take_to_clear(tug.pool, 0, 1);

		if (index != BLOCK_NONE)
			pool_give_cleared(tug.pool, index, false, 0);
	}
}

/* Only this CPU wants the only page, which is either free or on its way back. */
static void want_without_end(void)
{
	while (provoke_goes_on(&tug.until)) {
		struct page *page = pool_page_take(tug.pool, 0, POOL_ANY);

		tug.wanted++;
		tug.surplus += tug.pool->pages > 1; /* only this CPU changes the number of pages */
		if (page)
			pool_page_give(tug.pool, page);
		else
			tug.refused++;
		if (pool_reserve(tug.pool, 1) == 0)
			pool_unreserve(tug.pool, 1);
		else
			tug.refused++;
	}
}

static void tug_at_a_page(void *unused)
{
	const u32 turn = atomic_fetch_add(&tug.turn, 1);

	(void)unused;
	if (turn == 0)
		want_without_end();
	else if (turn == 1)
		clear_without_end();
}

/*
 * Provoke the page to come back after the look for a free page and before the look for one that is
 * being cleared.
 */
static void check_tug(u64 overcommit)
{
	struct arena *a;

	if (cpus_find_other() == CPU_NONE)
		SKIP("needs two CPUs");
	a = arena_borrow(MIB(16));
	if (!a)
		return;
	EXPECT_EQ(pool_grow(&a->pool, hvo_mode_find("on"), 1), 1);
	a->pool.overcommit = overcommit;
	tug = (struct tug){.pool = &a->pool, .until = provoke_begin()};
	cpus_run_together(tug_at_a_page, NULL);
	EXPECT(tug.wanted > 0);
	EXPECT_EQ(tug.refused, 0);
	EXPECT_EQ(tug.surplus, 0);
	EXPECT_EQ(a->pool.pages, 1);
	pool_expect_consistent(&a->pool);
	EXPECT(arena_accounted(a));
	arena_return(a);
}

TEST(mm_pool, a_page_that_comes_back_between_two_looks_is_not_missed)
{
	check_tug(0);
}

/* A surplus page made in its place would be one too many. */
TEST(mm_pool, no_surplus_page_is_made_for_one_that_comes_back)
{
	check_tug(1);
}

/* If no page is being cleared, an empty pool refuses at once. */
TEST(mm_pool, an_empty_pool_refuses_without_waiting)
{
	struct arena *a = arena_borrow(MIB(4));

	if (!a)
		return;
	EXPECT(!pool_page_take(&a->pool, 0, POOL_ANY));
	EXPECT_EQ(pool_reserve(&a->pool, 1), -ENOMEM);
	arena_return(a);
}
