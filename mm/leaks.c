/*
 * What is in use at the end of a run: see leaks.h.
 */
#include "mm/leaks.h"

#include <arch/atomic.h>
#include <arch/clock.h>
#include <arch/console.h>

#include "kernel/call.h"
#include "kernel/cmdline.h"
#include "kernel/percpu.h"
#include "kernel/printk.h"
#include "kernel/verdict.h"
#include "kernel/wait.h"
#include "mm/account.h"
#include "mm/page_check.h"
#include "mm/page_owner.h"
#include "mm/pool.h"
#include "mm/vmap.h"

enum { HOLDER_LINES = 24 };

enum { LEAKS_FAIL, LEAKS_OK };
static unsigned choice;
OPTION_CHOICE(leaks, choice, "fail|ok", "whether a run may pass whose program still has pages at its end");

static u64 kept; /* atomic */

static struct {
	u64 in_use, promised, ns;
} before;

void leaks_keep(u64 frames)
{
	atomic_fetch_add(&kept, frames);
}

u64 leaks_in_use(void)
{
	struct mm_usage usage;
	struct huge_usage huge;

	mm_usage(&usage);
	huge_usage(&huge);
	return usage.in_use - atomic_load_relaxed(&kept) - huge.tables_kept - vmap_tables();
}

static u64 promised(void)
{
	u64 pages = 0;

	for (const struct pool *const *pool = machine_pools; *pool; pool++)
		pages += (*pool)->reserved;
	return pages;
}

void leaks_begin(void)
{
	before.in_use = leaks_in_use();
	before.promised = promised();
	before.ns = clock_ns();
	verdict_check(leaks_check);
}

/* ---- work that has not ended ---- */

static bool is_idle(cpu_t cpu)
{
	return work_done(cpu) && atomic_load_acquire(&cpu_data(cpu)->idle);
}

static void name_work(cpu_t cpu)
{
	call_fn *fn = atomic_load_acquire(&cpu_data(cpu)->work.fn);
	u64 offset = 0;
	const char *name = fn ? symbol_lookup((virt_t)fn, &offset) : NULL;

	if (name)
		pr_err("leaks: CPU %u still runs %s(), which work_start() gave it", cpu, name);
	else
		pr_err("leaks: CPU %u is not idle", cpu);
}

/* The wait is for all of them together. False, and each is named, if it was in vain. */
static bool others_are_idle(void)
{
	struct wait wait = wait_begin(WAIT_WORK, "a CPU to be idle at the end of the run");
	bool ok = true;
	cpu_t cpu;

	wait.soft = true;
	cpumask_foreach(cpu, &cpus_online)
	{
		while (cpu != cpu_id() && !is_idle(cpu) && wait.late == 0)
			wait_spin(&wait, cpu);
		if (cpu != cpu_id() && !is_idle(cpu)) {
			name_work(cpu);
			ok = false;
		}
	}
	return ok;
}

/* ---- pages ---- */

static bool no_pool_page_is_left(const struct pool *pool)
{
	if (pool->in_use == 0)
		return true;
	pr_err("leaks: of them pages of the pool of %llu MiB pages: %llu", (unsigned long long)order_pages(pool->order) >> 8,
	       (unsigned long long)pool->in_use);
	return false;
}

static bool no_page_is_mapped(void)
{
	struct huge_usage huge;

	huge_usage(&huge);
	if (huge.mapped[0] + huge.mapped[1] + huge.mapped[2] == 0)
		return true;
	pr_err("leaks: of them pages of huge mappings: %llu of 4 KiB, %llu of 2 MiB, %llu of 1 GiB",
	       (unsigned long long)huge.mapped[0], (unsigned long long)huge.mapped[1], (unsigned long long)huge.mapped[2]);
	return false;
}

/* Each line but the first says more of it. */
static bool nothing_is_left(void)
{
	const u64 in_use = leaks_in_use(), pages = promised();
	bool ok = true;

	if (in_use > before.in_use) {
		pr_err("leaks: %llu frames are in use that were not before the run", (unsigned long long)(in_use - before.in_use));
		ok = false;
	}
	for (const struct pool *const *pool = machine_pools; *pool; pool++)
		ok &= no_pool_page_is_left(*pool);
	ok &= no_page_is_mapped();
	if (pages > before.promised) {
		pr_err("leaks: %llu pages of pools are promised and were never taken", (unsigned long long)(pages - before.promised));
		ok = false;
	}
	return ok;
}

static void print_holders(bool leaked)
{
	if (page_watch_at_boot() & WATCH_OWNERS) {
		print("# pages given out during the run and still in use, by holder\n");
		if (page_owner_summary(&mm_kernel, before.ns, HOLDER_LINES) == 0)
			print("  # none\n");
	} else if (leaked) {
		print("# page_owner=on would name the holders\n");
	}
}

bool leaks_check(void)
{
	const bool idle = others_are_idle();
	const bool accounted = !idle || mm_account(&mm_kernel, machine_pools); /* nobody may change what it walks */
	bool nothing = nothing_is_left();

	if (nothing && idle && !account_unshared(&mm_kernel)) /* of the kernel's own pages */
		nothing = false;

	print_holders(!nothing);
	if (idle && nothing)
		return accounted;
	if (choice == LEAKS_OK)
		print("# leaks=ok: the program means to leave that behind\n");
	else
		pr_err("leaks: the run fails; leaks=ok says that the program means to leave that behind");
	return accounted && choice == LEAKS_OK;
}
