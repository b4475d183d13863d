/*
 * Conditions that hold after every case (tests/kernel/test.h calls these functions): the other CPUs
 * are idle, and every frame of the machine and of the case's arenas has one owner, by counters and
 * by walking. A case may not keep pages, and it leaves the machine's pools as they were made at
 * boot.
 */
#include "mm/debug/account_refs.h"
#include "mm/debug/leaks.h"
#include "mm/page/page_owner.h"
#include "tests/kernel/fixture.h"
#include "tests/kernel/mm_test.h"

enum { LEAK_LINES = 8 };

/* Frames in use and the time, before the case. */
static struct {
	u64 in_use, ns;
} before;

static const struct fixture *open_fixture; /* begun, and to be ended */

static void fixture_begin(const struct test_case *tc)
{
	const struct fixture *fixture;

	TABLE_FOREACH(fixture, fixture_table)
	{
		if (strcmp(fixture->suite, tc->suite) != 0)
			continue;
		open_fixture = fixture;
		if (!fixture->begin() && !test_skipped())
			test_fail(tc->file, 0, "what its suite begins with could not be had");
	}
}

static void fixture_end(void)
{
	if (open_fixture)
		open_fixture->end();
	open_fixture = NULL;
}

void test_before_case(const struct test_case *tc)
{
	wait_period_ms = 0; /* a case that waits for what never comes makes it short */
	if (mm_kernel.ready) {
		atomic_store_relaxed(&mm_kernel.watch,
				     atomic_load_relaxed(&mm_kernel.watch) | WATCH_OWNERS);
		before.in_use = leaks_in_use();
		before.ns = clock_ns();
	}
	fixture_begin(tc);
}

/*
 * Did the case give all frames back? If not, the message names the holders of pages allocated since
 * the case began.
 */
static bool nothing_was_kept(void)
{
	const u64 now = leaks_in_use();

	if (now <= before.in_use)
		return true;
	pr_err("after the case: %llu frames more are in use than before it", now - before.in_use);
	page_owner_summary(&mm_kernel, before.ns, LEAK_LINES);
	return false;
}

static bool pool_is_as_at_boot(const struct pool *pool)
{
	if (pool->pages == pool->boot && pool->in_use + pool->surplus + pool->reserved == 0)
		return true;
	pr_err("the machine's pool has %llu pages, %llu in use, %llu reserved; it had %llu",
	       pool->pages, pool->in_use, pool->reserved, pool->boot);
	return false;
}

/* Commands of the monitor may have changed the pools before. */
bool test_before_run(void)
{
	if (!pool_2m.mm || (pool_is_as_at_boot(&pool_2m) && pool_is_as_at_boot(&pool_1g)))
		return true;
	print("# refused: the cases need the pools as they were at boot: pool 2M %llu; pool 1G "
	      "%llu\n",
	      pool_2m.boot, pool_1g.boot);
	return false;
}

bool test_after_case(void)
{
	bool idle, ok;

	fixture_end();
	idle = cpus_wait_idle();
	test_options_back();
	arenas_end_case();
	ok = idle;
	if (!mm_kernel.ready || !pool_2m.mm)
		return ok;
	ok &= pool_is_as_at_boot(&pool_2m);
	ok &= pool_is_as_at_boot(&pool_1g);
	if (idle && (!account_machine() || !account_pages(&mm_kernel, CHECK_UNSHARED)))
		ok = false;
	return nothing_was_kept() && ok;
}
