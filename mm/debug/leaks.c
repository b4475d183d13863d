/* Memory in use at the end of a run: see leaks.h. */
#include "mm/debug/leaks.h"

#include <arch/atomic.h>
#include <arch/clock.h>
#include <arch/console.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/core/verdict.h"
#include "kernel/core/wait.h"
#include "mm/debug/account.h"
#include "mm/debug/account_refs.h"
#include "mm/hugetlb/pool.h"
#include "mm/zone/report.h"
#include "mm/map/vmap.h"
#include "mm/page/page_check.h"
#include "mm/page/page_owner.h"

enum { HOLDER_LINES = 24 };

enum { LEAKS_FAIL, LEAKS_OK };
static unsigned choice;
OPTION_CHOICE(end.leaks, choice, "fail|ok",
	      "whether a run may pass although its program still holds pages at the end");

static u64 kept; /* frames that stay in use for good; atomic */

static struct {
	u64 in_use, ns;
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

	for (const struct pool *pool = mm_kernel.pools; pool; pool = pool->next)
		pages += atomic_load_relaxed(&pool->reserved);
	return pages;
}

void leaks_begin(void)
{
	before.in_use = leaks_in_use();
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
	u64 offset;
	const char *name = fn ? symbol_lookup((virt_t)fn, &offset) : NULL;

	if (name)
		pr_err("leaks: CPU %u still runs %s(), which work_start() gave it", cpu, name);
	else
		pr_err("leaks: CPU %u is not idle", cpu);
}

/*
 * Wait for all other CPUs together. If the wait was in vain, return false and name each busy CPU.
 */
static bool others_are_idle(void)
{
	struct wait wait = wait_begin(WAIT_WORK, "the end of the work of this run");
	bool ok = true;
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online) {
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

/* Say how many of the frames in use belong to pools and how many to huge mappings. */
static void print_users(void)
{
	struct huge_usage huge;

	for (const struct pool *pool = mm_kernel.pools; pool; pool = pool->next)
		if (atomic_load_relaxed(&pool->in_use) > 0)
			pr_err("leaks: among them, the pool of %llu MiB pages has %llu pages in "
			       "use",
			       order_pages(pool->order) >> 8, pool->in_use);
	huge_usage(&huge);
	if (huge.mapped[0] + huge.mapped[1] + huge.mapped[2] > 0)
		pr_err("leaks: among them, huge mappings hold %llu pages of 4 KiB, %llu of 2 MiB, "
		       "%llu of 1 GiB",
		       huge.mapped[0], huge.mapped[1], huge.mapped[2]);
}

static bool nothing_is_left(void)
{
	const u64 in_use = leaks_in_use(), pages = promised();

	if (in_use > before.in_use) {
		pr_err("leaks: %llu frames are in use that were not in use before the run",
		       in_use - before.in_use);
		print_users();
	}
	if (pages > 0) /* before a run there is nobody to promise them to */
		pr_err("leaks: %llu pages of pools are promised and were never taken", pages);
	return in_use <= before.in_use && pages == 0;
}

static void print_holders(bool leaked)
{
	if (page_watch_at_boot() & WATCH_OWNERS) {
		print("# pages given out during the run and still in use, by holder\n");
		if (page_owner_summary(&mm_kernel, before.ns, HOLDER_LINES) == 0)
			print("  # none\n");
	} else if (leaked) {
		print("# debug.page_owner=on would name the holders\n");
	}
}

bool leaks_check(void)
{
	bool idle, accounted, nothing;

	report_pause();
	idle = others_are_idle();
	/* no other CPU may change what mm_account() walks */
	accounted = !idle || account_machine();
	nothing = nothing_is_left();

	/* only the kernel's own pages are left, and nobody shares those */
	if (nothing && idle && !account_pages(&mm_kernel, CHECK_UNSHARED))
		nothing = false;

	print_holders(!nothing);
	if (idle && nothing)
		return accounted;
	if (choice == LEAKS_OK)
		print("# end.leaks=ok: what the program left behind does not fail the run\n");
	else
		pr_err("leaks: the run fails; end.leaks=ok would accept what the program left "
		       "behind");
	return accounted && choice == LEAKS_OK;
}
