/*
 * Clearing ahead of need: see prezero.h. FreeBSD's vm_zeroidle.c did it for small pages. It spends
 * bandwidth and power before anybody has asked for a page, so it is off by default.
 */
#include "mm/hugetlb/prezero.h"

#include <arch/clock.h>
#include <arch/cpu.h>

#include "kernel/core/call.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/context.h"
#include "kernel/core/percpu.h"
#include "kernel/core/wait.h"
#include "mm/clear/clear.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/memmap/page.h"

static u64 prezero;
OPTION_U64(prezero, prezero, 0, 1ULL << 30,
	   "free pool pages of each size that idle CPUs clear ahead of need");

u64 prezero_set(u64 pages)
{
	const u64 before = atomic_exchange(&prezero, pages);

	prezero_wake(&pool_2m);
	prezero_wake(&pool_1g);
	return before;
}

/* Returns true if an idle CPU is clearing a page of the pool. */
static bool change_holds(struct pool *pool, u64 added)
{
	bool clearing;

	spin_lock(&pool->lock);
	counter_add(&pool->holds, added);
	clearing = pool->clearing > 0;
	spin_unlock(&pool->lock);
	return clearing;
}

void prezero_hold(struct pool *pool)
{
	struct wait wait;

	context_assert(CONTEXT_ORDINARY);
	if (!change_holds(pool, 1))
		return;
	wait = wait_begin(WAIT_TRANSIT, "idle CPUs that clear pages ahead of need");
	wait.soft = true;
	do
		wait_spin(&wait, CPU_NONE);
	while (change_holds(pool, 0));
}

bool prezero_hold_if_on(struct pool *pool)
{
	const bool on =
		atomic_load_relaxed(&prezero) > 0 || atomic_load_relaxed(&pool->clearing) > 0;

	if (on)
		prezero_hold(pool);
	return on;
}

void prezero_release(struct pool *pool)
{
	change_holds(pool, -1ULL);
	prezero_wake(pool);
}

u64 prezero_pause(void)
{
	context_assert(CONTEXT_ORDINARY);
	prezero_hold(&pool_2m);
	prezero_hold(&pool_1g);
	return atomic_load_relaxed(&prezero);
}

void prezero_resume(void)
{
	prezero_release(&pool_2m);
	prezero_release(&pool_1g);
}

/* Returns false if work for this CPU arrived, or the page is wanted, before the page was clear. */
static bool clear_unless_wanted(struct pool *pool, void *addr, u64 bytes, node_t node)
{
	struct clear_how how = clear_how_selected();

	how.threads = 1;
	for (u64 at = 0; at < bytes; at += CLEAR_EXTENT) {
		if (work_waits() || atomic_load_relaxed(&pool->holds) > 0)
			return false;
		clear_huge(&how, (char *)addr + at, MIN(bytes - at, CLEAR_EXTENT), CLEAR_NO_HINT,
			   node);
	}
	return true;
}

static bool clear_one(struct pool *pool)
{
	const node_t node = this_cpu()->node;
	u64 start;
	u32 index;
	bool done;

	if (atomic_load_relaxed(&pool->zeroed) >= atomic_load_relaxed(&prezero))
		return false;
	index = pool_take_to_clear(pool, node, atomic_load_relaxed(&prezero));
	if (index == BLOCK_NONE)
		return false;
	start = clock_ns();
	done = clear_unless_wanted(pool, phys_to_virt(block_pfn(index) << PAGE_SHIFT),
				   PAGE_SIZE << pool->order, node);
	pool_give_cleared(pool, index, done, clock_ns() - start);
	return true;
}

bool prezero_idle(void)
{
	if (atomic_load_relaxed(&prezero) == 0)
		return false;
	return clear_one(&pool_2m) || clear_one(&pool_1g);
}

void prezero_wake(struct pool *pool)
{
	u64 wanted = atomic_load_relaxed(&prezero);

	if (wanted == 0 || (pool != &pool_2m && pool != &pool_1g))
		return;
	spin_lock(&pool->lock);
	wanted = MIN(wanted - MIN(wanted, pool->zeroed), pool->free - pool->zeroed);
	spin_unlock(&pool->lock);
	if (wanted > 0)
		idle_task_wake(wanted);
}

void prezero_init(void)
{
	idle_task_set(prezero_idle);
	prezero_wake(&pool_2m);
	prezero_wake(&pool_1g);
}
