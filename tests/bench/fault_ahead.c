/*
 * Faults on pages that idle CPUs cleared ahead of need (prezero=PAGES, mm/hugetlb/prezero.h). A
 * touch then clears nothing, but the clearing has not become cheaper: it was done earlier, by
 * another CPU. The row therefore shows both, the latency of a touch and the time that idle CPUs had
 * spent on the page, and their sum beside the rows of pages that are cleared when they are touched.
 *
 *   off the clock   idle CPUs clear up to prezero= pages; their time is counted in the pool
 *   then            nothing; the pool shrinks and grows again by all pages; or its 1 GiB pages are
 *                   demoted, and pages of 2 MiB are touched
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

enum { RUNS = 3, RECORDS_MAX = 5 * RUNS, LATE_MAX = 8 };

/* The events between the clearing of the pages and the touch. */
enum then { NOTHING, REGROWN, DEMOTED, THENS };

static const char *const then_names[THENS] = {"nothing", "regrown", "demoted"};

struct ahead {
	const char *size;
	enum then then;
	u64 pages, zeroed, faults, ns, idle_ns;
	u64 most_ns; /* the longest touch */
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
static void clear_ahead(struct pool *pool, u64 count)
{
	struct wait wait = wait_begin(WAIT_GROWTH, "pages that idle CPUs clear for the benchmark");
	u64 seen = 0;

	wait.soft = true;
	prezero_resume();
	while (atomic_load_acquire(&pool->zeroed) < count && wait.late < LATE_MAX) {
		if (atomic_load_relaxed(&pool->zeroed) > seen) {
			seen = atomic_load_relaxed(&pool->zeroed);
			wait.late = 0;
		}
		wait_spin(&wait, CPU_NONE);
	}
	prezero_pause();
}

static u64 demoted_pages(const struct ahead *run)
{
	return run->then == DEMOTED ? run->pages / GIB_BLOCKS : 0;
}

/* Do to the cleared pages what the run says. The pool to be touched has run->pages free pages. */
static bool prepare(struct pool *pool, const struct ahead *run)
{
	const struct hvo_mode *mode = hvo_mode_selected();

	if (run->then == REGROWN)
		return pool_shrink(pool, mode, run->pages) == run->pages &&
		       pool_grow(pool, mode, run->pages) == run->pages;
	if (run->then == DEMOTED)
		return pool_demote(pool, &pool_2m, mode, demoted_pages(run)) == demoted_pages(run);
	return true;
}

/* Demoted pages become 1 GiB pages again. */
static bool put_right(struct pool *pool, const struct ahead *run)
{
	const struct hvo_mode *mode = hvo_mode_selected();

	return run->then != DEMOTED ||
	       (pool_shrink(&pool_2m, mode, run->pages) == run->pages &&
		pool_grow(pool, mode, demoted_pages(run)) == demoted_pages(run));
}

static void touch_all(char *addr, u64 bytes, struct ahead *run)
{
	for (u64 i = 0; i < run->pages; i++) {
		const u64 start = clock_cpu_ns();
		u64 ns;

		*(volatile char *)(addr + i * bytes) = 1;
		ns = clock_cpu_ns() - start;
		run->ns += ns;
		run->most_ns = MAX(run->most_ns, ns);
	}
	run->ns = MAX(run->ns, 1);
}

/* One run: clear ahead, prepare, map, touch, unmap. Returns false if any of that failed. */
static bool run_once(struct pool *pool, u64 bound, struct ahead *run)
{
	struct pool *touched = run->then == DEMOTED ? &pool_2m : pool;
	const u64 bytes = PAGE_SIZE << touched->order;
	const u64 cleared = run->then == DEMOTED ? demoted_pages(run) : run->pages;
	char *addr;

	run->idle_ns = atomic_load_relaxed(&pool->cleared_ns);
	clear_ahead(pool, MIN(bound, cleared));
	run->idle_ns = atomic_load_relaxed(&pool->cleared_ns) - run->idle_ns;
	if (!prepare(pool, run))
		return false;
	run->zeroed = atomic_load_relaxed(&touched->zeroed);
	addr = huge_map(run->pages * bytes, bytes, HUGE_RESERVE);
	if (!addr)
		return false;
	run->faults = faults_so_far(touched);
	touch_all(addr, bytes, run);
	run->faults = faults_so_far(touched) - run->faults;
	huge_unmap(addr);
	return put_right(pool, run) && run->faults == run->pages;
}

static void print_ahead(const struct ahead *runs)
{
	static const char *const rows[THENS] = {"ahead", "regrown", "demoted"};
	u64 ns[RUNS], idle[RUNS], most = 0;
	u64 touch, before;

	for (unsigned i = 0; i < RUNS; i++) {
		ns[i] = runs[i].ns / runs[i].pages;
		idle[i] = runs[i].idle_ns / MAX(runs[i].zeroed, 1);
		most = MAX(most, runs[i].most_ns);
	}
	sort_u64(ns, RUNS);
	sort_u64(idle, RUNS);
	touch = ns[RUNS / 2];
	before = idle[RUNS / 2];
	print("  %s   default  %-8s     1 %7llu %4u   %llu.%03llu us/fault, the longest "
	      "%llu.%03llu "
	      "us; idle CPUs spent %llu.%03llu us on each of %llu pages before; together "
	      "%llu.%03llu us\n",
	      runs->size, rows[runs->then], runs->pages, RUNS, touch / 1000, touch % 1000,
	      most / 1000, most % 1000, before / 1000, before % 1000, runs->zeroed,
	      (touch + before) / 1000, (touch + before) % 1000);
}

static bool run_then(struct pool *pool, u64 pages, u64 bound, enum then then)
{
	struct ahead *runs = &records[record_count];
	const bool small = then == DEMOTED || pool->order == BLOCK_ORDER;
	bool ok = true;

	for (unsigned i = 0; i < RUNS && ok; i++) {
		runs[i] = (struct ahead){
			.size = small ? "2M" : "1G", .then = then, .pages = pages, .run = i + 1};
		ok = run_once(pool, bound, &runs[i]);
	}
	if (!ok) {
		pr_err("fault: pages cleared ahead (then: %s) were not faulted in once each",
		       then_names[then]);
		return false;
	}
	record_count += RUNS;
	print_ahead(runs);
	return true;
}

bool fault_ahead_run(struct pool *pool, u64 pages, u64 bound)
{
	const bool giga = pool->order == GIGA_ORDER;
	const unsigned thens = giga ? THENS : DEMOTED;
	bool ok = true;

	if (cpumask_weight(&cpus_online) < 2 || record_count + thens * RUNS > RECORDS_MAX) {
		print("  ahead: left out: no CPU is idle beside this one\n");
		return true;
	}
	for (unsigned then = NOTHING; then < thens && ok; then++)
		ok = run_then(pool, then == DEMOTED ? pages * GIB_BLOCKS : pages, bound, then);
	return ok;
}

void fault_ahead_record(void)
{
	for (unsigned i = 0; i < record_count; i++) {
		const struct ahead *run = &records[i];

		print("BENCH fault_ahead size=%s then=%s pages=%llu zeroed=%llu run=%u faults=%llu "
		      "ns=%llu most_ns=%llu idle_ns=%llu\n",
		      run->size, then_names[run->then], run->pages, run->zeroed, run->run,
		      run->faults, run->ns, run->most_ns, run->idle_ns);
	}
	record_count = 0;
}
