/*
 * How long the locks of a zone and a pool are held while very many huge pages are given to a pool
 * and taken back. All other CPUs that want memory wait for these locks. The pages are records only
 * (tests/kernel/huge_records.h), so that a TiB of them fits everywhere.
 *
 *	make host-native && build/host/native/ashlar-host -x -m 1G \
 *		-k 'bench="holds pages=500000 runs=5"'
 *
 *	BENCH holds op=grow|shrink pages=N done=N run=R ns=T zone_ns=T zone_records=N
 *	      zone_in=FUNCTION pool_ns=T pool_records=N pool_in=FUNCTION
 *
 * Times of holds are CPU time, not clock time. Hosted, they exclude the time that the host gave to
 * other processes.
 */
#include <arch/clock.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/lock.h"
#include "kernel/core/lock_holds.h"
#include "kernel/core/printk.h"
#include "kernel/core/verdict.h"
#include "kernel/run/bench.h"
#include "mm/hvo/hvo_take.h"
#include "tests/bench/hvo_bench.h"
#include "tests/kernel/huge_records.h"

struct turn {
	u64 pages, done, ns;
	struct lock_holds zone, pool;
};

static void turn_begin(struct turn *turn)
{
	lock_holds_forget();
	turn->ns = clock_ns();
}

static void turn_end(struct turn *turn)
{
	turn->ns = clock_ns() - turn->ns;
	turn->zone = lock_holds_read(LOCK_ZONE);
	turn->pool = lock_holds_read(LOCK_POOL);
}

static void print_lock(const char *lock, const struct lock_holds *holds)
{
	print("  %s %5llu.%03llu us, %6llu records in %-16s", lock, holds->ns.most / NS_PER_US,
	      holds->ns.most % NS_PER_US, holds->work.most, lock_function(holds->ns.taken_at));
}

static void record_lock(const char *lock, const struct lock_holds *holds)
{
	print(" %s_ns=%llu %s_records=%llu %s_in=%s", lock, holds->ns.most, lock, holds->work.most,
	      lock, lock_function(holds->ns.taken_at));
}

static void print_turn(const struct turn *turn, const char *op, u64 run)
{
	print("  %-6s %7llu %7llu.%03llu ms", op, turn->done, turn->ns / NS_PER_MS,
	      turn->ns / NS_PER_US % 1000);
	print_lock("zone", &turn->zone);
	print_lock("pool", &turn->pool);
	print("\nBENCH holds op=%s pages=%llu done=%llu run=%llu ns=%llu", op, turn->pages,
	      turn->done, run, turn->ns);
	record_lock("zone", &turn->zone);
	record_lock("pool", &turn->pool);
	print("\n");
}

static bool run_turns(struct arena *a, u64 run)
{
	struct turn grow = {.pages = hvo_pages}, shrink = {.pages = hvo_pages};
	const struct hvo_mode *on = hvo_mode_find("on");

	turn_begin(&grow);
	grow.done = pool_grow_on(&a->pool, on, 1, hvo_pages);
	turn_end(&grow);
	turn_begin(&shrink);
	shrink.done = pool_shrink_on(&a->pool, on, 1, hvo_pages);
	turn_end(&shrink);
	print_turn(&grow, "grow", run);
	print_turn(&shrink, "shrink", run);
	return grow.done == hvo_pages && shrink.done == hvo_pages;
}

static bool bench_holds(void)
{
	struct option_saved saved;
	struct arena *a;
	bool ok = true;

	a = huge_records_borrow(hvo_pages);
	if (!a) {
		print("  # skipped: this machine cannot lend memory for the records of %llu "
		      "pages\n",
		      hvo_pages);
		verdict_count(0, 0, 1);
		return true;
	}
	print("Longest holds of the locks of a zone and a pool, %llu pages of 2 MiB\n\n",
	      hvo_pages);
	option_set_for_now(option_find("lock_holds"), "on", &saved);
	for (u64 run = 1; run <= hvo_runs; run++)
		ok &= run_turns(a, run);
	option_put_back(&saved, 1);
	huge_records_return(a);
	return ok;
}

BENCH(holds,
      "the longest holds of the locks of zone and pool, growing and shrinking a pool (pages=, "
      "runs=)",
      bench_holds);
