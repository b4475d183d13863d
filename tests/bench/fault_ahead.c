/*
 * Faults on pages that idle CPUs cleared ahead of need (prezero=PAGES, mm/hugetlb/prezero.h). A
 * touch then clears nothing, but the clearing has not become cheaper: it was done earlier, by
 * another CPU. The row therefore shows both, the latency of a touch and the time that idle CPUs had
 * spent on the page, and their sum beside the rows of pages that are cleared when they are touched.
 *
 *   off the clock   idle CPUs clear up to prezero= pages; their time is counted in the pool
 *   on the clock    one CPU touches all pages; idle CPUs clear nothing meanwhile
 */
#include "tests/bench/fault_ahead.h"

#include <arch/clock.h>

#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/core/wait.h"
#include "mm/hugetlb/pool_use.h"
#include "mm/hugetlb/prezero.h"
#include "tests/bench/sort.h"

enum { RUNS = 3, RECORDS_MAX = 2 * RUNS, LATE_MAX = 8 };

struct ahead {
	const char *size;
	u64 pages, zeroed, faults, ns, idle_ns;
	unsigned run;
};

static struct ahead records[RECORDS_MAX];
static unsigned record_count;

static u64 faults_so_far(const struct pool *pool)
{
	struct huge_usage usage;

	huge_usage(&usage);
	return usage.faults[pool->order == GIGA_ORDER ? 2 : 1];
}

/* Let idle CPUs clear pages until `count` are zero, or they make no progress. */
static void clear_ahead(struct pool *pool, u64 count, u64 bound)
{
	struct wait wait = wait_begin(WAIT_GROWTH, "pages that idle CPUs clear for the benchmark");
	u64 seen = 0;

	wait.soft = true;
	prezero_set(bound);
	while (atomic_load_acquire(&pool->zeroed) < count && wait.late < LATE_MAX) {
		if (atomic_load_relaxed(&pool->zeroed) > seen) {
			seen = atomic_load_relaxed(&pool->zeroed);
			wait.late = 0;
		}
		wait_spin(&wait, CPU_NONE);
	}
	prezero_pause();
}

/* One run: clear ahead, map, touch, unmap. Returns false if the region could not be mapped. */
static bool run_once(struct pool *pool, u64 bound, struct ahead *run)
{
	const u64 bytes = PAGE_SIZE << pool->order;
	char *addr;

	run->idle_ns = atomic_load_relaxed(&pool->cleared_ns);
	clear_ahead(pool, MIN(bound, run->pages), bound);
	run->idle_ns = atomic_load_relaxed(&pool->cleared_ns) - run->idle_ns;
	run->zeroed = atomic_load_relaxed(&pool->zeroed);
	addr = huge_map(run->pages * bytes, bytes, HUGE_RESERVE);
	if (!addr)
		return false;
	run->faults = faults_so_far(pool);
	run->ns = clock_cpu_ns();
	for (u64 i = 0; i < run->pages; i++)
		*(volatile char *)(addr + i * bytes) = 1;
	run->ns = MAX(clock_cpu_ns() - run->ns, 1);
	run->faults = faults_so_far(pool) - run->faults;
	huge_unmap(addr);
	return true;
}

static void print_ahead(const struct ahead *runs)
{
	u64 ns[RUNS], idle[RUNS];
	u64 touch, before;

	for (unsigned i = 0; i < RUNS; i++) {
		ns[i] = runs[i].ns / runs[i].pages;
		idle[i] = runs[i].idle_ns / MAX(runs[i].zeroed, 1);
	}
	sort_u64(ns, RUNS);
	sort_u64(idle, RUNS);
	touch = ns[RUNS / 2];
	before = idle[RUNS / 2];
	print("  %s   default  ahead        1 %7llu %4u   %llu.%03llu us/fault; idle CPUs spent "
	      "%llu.%03llu us on each of %llu pages before; together %llu.%03llu us\n",
	      runs->size, runs->pages, RUNS, touch / 1000, touch % 1000, before / 1000,
	      before % 1000, runs->zeroed, (touch + before) / 1000, (touch + before) % 1000);
}

bool fault_ahead_run(struct pool *pool, u64 pages, u64 bound)
{
	struct ahead *runs = &records[record_count];
	bool ok = true;

	if (cpumask_weight(&cpus_online) < 2 || record_count + RUNS > RECORDS_MAX) {
		print("  ahead: left out: no CPU is idle beside this one\n");
		return true;
	}
	for (unsigned i = 0; i < RUNS && ok; i++) {
		runs[i] = (struct ahead){.size = pool->order == GIGA_ORDER ? "1G" : "2M",
					 .pages = pages,
					 .run = i + 1};
		ok = run_once(pool, bound, &runs[i]) && runs[i].faults == pages;
	}
	if (!ok) {
		pr_err("fault: pages cleared ahead were not faulted in once each");
		return false;
	}
	record_count += RUNS;
	print_ahead(runs);
	return true;
}

void fault_ahead_record(void)
{
	for (unsigned i = 0; i < record_count; i++) {
		const struct ahead *run = &records[i];

		print("BENCH fault_ahead size=%s pages=%llu zeroed=%llu run=%u faults=%llu ns=%llu "
		      "idle_ns=%llu\n",
		      run->size, run->pages, run->zeroed, run->run, run->faults, run->ns,
		      run->idle_ns);
	}
	record_count = 0;
}
