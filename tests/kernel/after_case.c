/*
 * What must be true after every case (kernel/test.h calls it): the other CPUs are idle, no arena is left, and every frame of
 * the machine has one owner, by the counters and by walking. A case may not keep pages either,
 * and leaves the machine's pools as they were made at boot.
 */
#include "kernel/panic.h"
#include "kernel/printk.h"
#include "kernel/test.h"
#include "mm/account.h"
#include "mm/pool.h"
#include "tests/kernel/arena.h"
#include "tests/kernel/cpus.h"

/* Frames in use, less what windows keep for good. Before the first case nothing is known. */
static bool nothing_was_kept(void)
{
	static u64 before;
	struct mm_usage usage;
	u64 now;
	bool same;

	mm_usage(&usage);
	now = usage.in_use - arena_tables_kept();
	same = before == 0 || now <= before;
	if (!same)
		pr_err("after the case: %llu frames more are in use than before it", (unsigned long long)(now - before));
	before = now;
	return same;
}

static bool pool_is_as_at_boot(const struct pool *pool)
{
	if (pool->pages == pool->boot && pool->in_use + pool->surplus + pool->reserved == 0)
		return true;
	pr_err("after the case: the machine's pool has %llu pages, %llu in use, %llu reserved; it had %llu",
	       (unsigned long long)pool->pages, (unsigned long long)pool->in_use, (unsigned long long)pool->reserved,
	       (unsigned long long)pool->boot);
	return false;
}

bool test_after_case(void)
{
	const bool idle = cpus_wait_idle();
	const bool had_arena = arena_return_leftovers();
	bool ok = idle;

	if (!mm_kernel.ready || !pool_2m.mm)
		return ok;
	if (had_arena && !test_failed()) { /* a failed one has an excuse */
		pr_err("after the case: it did not return its arena");
		ok = false;
	}
	ok &= pool_is_as_at_boot(&pool_2m);
	ok &= pool_is_as_at_boot(&pool_1g);
	if (idle && !mm_account(&mm_kernel, machine_pools))
		ok = false;
	return nothing_was_kept() && ok;
}
