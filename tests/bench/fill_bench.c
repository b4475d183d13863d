/*
 * A pool over nearly all memory, made from memory that was never used. This is the cost of
 * `hugepages=` at boot, with more and more CPUs.
 *
 * Each measurement first gives the pool back and closes every section that can be closed, untimed.
 * Then, timed, sections are opened, metadata memory grows for the heads, and pages are made. One
 * unmeasured run comes first, so that the host behind a virtual machine has backed the memory.
 * Rows, hvo.threads= of 1, 2, 4, up to all CPUs, take turns, runs= times.
 */
#include <arch/clock.h>

#include "kernel/console/input.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/run/bench.h"
#include "mm/debug/account.h"
#include "mm/zone/section.h"
#include "mm/zone/section_close.h"
#include "tests/bench/hvo_bench.h"
#include "tests/bench/spread.h"

enum { ROWS_MAX = 7, RUNS_MAX = 21, FILL_PERCENT = 98 };

struct row {
	u64 threads, pages, ns[RUNS_MAX];
	unsigned runs;
	struct spread spread;
};

static struct row rows[ROWS_MAX];
static unsigned row_count;

/* ---- measuring ---- */

static u64 pages_wanted(void)
{
	u64 frames = 0;

	for (unsigned z = 0; z < mm_kernel.zones; z++)
		frames += mm_kernel.zone[z].ram;
	return frames / 100 * FILL_PERCENT / order_pages(hvo_pool()->order);
}

/*
 * Fill and empty the pool. Returns the nanoseconds of filling and sets *pages to the number of
 * pages made. Returns 0 if none were made, or if not all of them came back.
 */
static u64 fill_once(u64 *pages)
{
	u64 ns = clock_ns();

	*pages = pool_grow(hvo_pool(), hvo_mode_selected(), pages_wanted());
	ns = clock_ns() - ns;
	if (*pages == 0 || pool_shrink(hvo_pool(), hvo_mode_selected(), *pages) != *pages) {
		pr_err("fill: %llu pages were made, and not all came back", *pages);
		return 0;
	}
	sections_close_all(&mm_kernel);
	return ns;
}

/* One measurement with the row's number of threads. */
static bool measure(struct row *row)
{
	struct option_saved saved;
	char text[8];
	u64 ns;

	format(text, sizeof(text), "%llu", row->threads);
	if (option_set_for_now(option_find("hvo.threads"), text, &saved) != 0)
		return false;
	ns = fill_once(&row->pages);
	option_put_back(&saved, 1);
	row->ns[row->runs++] = ns;
	return ns != 0;
}

static bool measure_in_turn(void)
{
	u64 pages;
	bool ok;

	sections_close_all(&mm_kernel);
	ok = fill_once(&pages) != 0;
	for (u64 run = 0; run < hvo_runs; run++)
		for (unsigned i = 0; i < row_count && ok && !input_stop_asked(); i++)
			ok = measure(&rows[i]);
	return ok;
}

static void choose_rows(void)
{
	const u64 cpus = cpumask_weight(&cpus_online);

	row_count = 0;
	for (u64 threads = 1; threads <= cpus && row_count < ROWS_MAX; threads *= 2)
		rows[row_count++] = (struct row){.threads = threads};
}

/* ---- output ---- */

static void print_row(const struct row *row, u64 one)
{
	const struct spread ns = row->spread;
	const unsigned long long ratio = one ? ns.median * 100 / one : 0;

	print("  %7llu %9llu %12llu %7llu %9llu %5llu.%02llux\n", row->threads, row->pages,
	      ns.median / NS_PER_US, ns.sd / NS_PER_US, ns.median / MAX(row->pages, 1), ratio / 100,
	      ratio % 100);
}

static void record_row(const struct row *row)
{
	for (unsigned run = 0; run < row->runs; run++)
		print("BENCH fill mode=%s size=%s cpus=%u threads=%llu pages=%llu percent=%u "
		      "run=%u ns=%llu\n",
		      hvo_mode_selected()->name, hvo_size_name(), cpumask_weight(&cpus_online),
		      row->threads, row->pages, FILL_PERCENT, run + 1, row->ns[run]);
}

static bool bench_fill(void)
{
	bool ok;

	choose_rows();
	print("A pool of %s pages over %u%% of the memory, made from sections that are not open\n"
	      "%u CPUs, hvo=%s; rows in turn, medians of %llu\n\n  threads     pages   "
	      "microseconds    (sd)   ns/page : one thread\n",
	      hvo_size_name(), FILL_PERCENT, cpumask_weight(&cpus_online),
	      hvo_mode_selected()->name, hvo_runs);
	ok = measure_in_turn();
	for (unsigned i = 0; i < row_count && rows[i].runs > 0; i++) {
		/* sorts them, so a record's run number is a rank */
		rows[i].spread = spread_of(rows[i].ns, rows[i].runs);
		print_row(&rows[i], rows[0].spread.median);
	}
	print("\n");
	for (unsigned i = 0; i < row_count && rows[i].runs > 0; i++)
		record_row(&rows[i]);
	return ok && account_machine();
}

BENCH(fill,
      "fill a pool with nearly all memory, from unopened sections, by 1 to all CPUs (hugepages= at "
      "boot)",
      bench_fill);
