/*
 * The time of pages requested one by one, as a histogram (hist=1) and page by page for a
 * spreadsheet (csv=1).
 *
 * The table of the HVO series' benchmark divides a batch's time by its pages. Here every page is a
 * request of its own, so each pays for a mode's rounds, and one that starts a deferred round, opens
 * a section or makes metadata memory grow stands out.
 *
 * `take` is a user's request for a page of the pool. With hvo=on and recycled memory the first one
 * starts the round that growing left due, which is the longest wait of an allocation. The round is
 * deferred until then on purpose: the pool is kept below the bound at which its own batch would
 * have ended with that round.
 */
#include <arch/clock.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"
#include "mm/hugetlb/pool_use.h"
#include "tests/bench/hvo_bench.h"
#include "tests/bench/sort.h"

enum { PAGES_MAX = 4096, BUCKETS = 40, BAR_MAX = 40 };

static bool want_hist, want_csv;
OPTION_BOOL(bench.hvo.hist, want_hist, "a histogram of the time of single pages");
OPTION_BOOL(bench.hvo.csv, want_csv, "the time of every single page, as comma-separated values");

enum op { OP_GROW, OP_TAKE, OP_SHRINK, OPS };
static const char *const op_names[] = {"alloc", "take", "free"};
static u64 ns_of[OPS][PAGES_MAX], sorted[PAGES_MAX];
static struct page *held[PAGES_MAX];

bool hvo_pages_wanted(void)
{
	return want_hist || want_csv;
}

static u64 since(u64 start)
{
	return MIN(clock_ns() - start, 0xffffffffULL); /* limit of the buckets */
}

/*
 * One request for each page. Returns how many pages went through all three operations, or 0 if any
 * failed.
 */
static u64 measure(const struct hvo_mode *mode, u64 pages)
{
	u64 count = 0, taken = 0;

	for (; count < pages; count++) {
		const u64 start = clock_ns();

		if (pool_grow(hvo_pool(), mode, 1) == 0)
			break;
		ns_of[OP_GROW][count] = since(start);
	}
	for (; taken < count; taken++) {
		const u64 start = clock_ns();

		held[taken] = pool_page_take(hvo_pool(), NODE_NONE, POOL_ANY);
		ns_of[OP_TAKE][taken] = since(start);
		if (!held[taken])
			break;
	}
	for (u64 i = 0; i < taken; i++)
		pool_page_give(hvo_pool(), held[i]);
	for (u64 i = 0; i < count; i++) {
		const u64 start = clock_ns();

		if (pool_shrink(hvo_pool(), mode, 1) == 0)
			return 0;
		ns_of[OP_SHRINK][i] = since(start);
	}
	return taken == count ? count : 0;
}

static void print_hist(const char *mode, const char *op, const u64 *ns, u64 count)
{
	u64 bucket[BUCKETS] = {0}, most = 0;

	for (u64 i = 0; i < count; i++)
		bucket[ns[i] ? 64 - __builtin_clzll(ns[i]) : 0]++;
	for (unsigned b = 0; b < BUCKETS; b++)
		most = MAX(most, bucket[b]);
	print("\n  %s, %s: pages by time of one\n", mode, op);
	for (unsigned b = 0; b < BUCKETS; b++) {
		char bar[BAR_MAX + 1];
		const u64 length = DIV_ROUND_UP(bucket[b] * BAR_MAX, most);

		if (bucket[b] == 0)
			continue;
		memset(bar, '#', length);
		bar[length] = 0;
		print("  below %9llu.%03llu us %6llu  %s\n", (1ULL << b) / 1000, (1ULL << b) % 1000,
		      bucket[b], bar);
	}
}

static void print_csv(const char *mode, const char *source, const char *op, const u64 *ns,
		      u64 count)
{
	for (u64 i = 0; i < count; i++)
		print("CSV hvo,%s,%s,%s,%llu,%llu\n", mode, source, op, i, ns[i]);
}

static void record(const struct leg *leg, const char *op, const u64 *ns, u64 count)
{
	u64 sum = 0;

	for (u64 i = 0; i < count; i++) {
		sorted[i] = ns[i];
		sum += ns[i];
	}
	sort_u64(sorted, count);
	print("BENCH hvo_page mode=%s source=%s op=%s size=%s pages=%llu cpus=%u busy=%llu "
	      "ns_min=%llu ns_mean=%llu ns_p50=%llu"
	      " ns_p99=%llu ns_max=%llu flushes=%llu\n",
	      leg->mode->name, leg->source, op, hvo_size_name(), count,
	      cpumask_weight(&cpus_online), hvo_busy, sorted[0], sum / count, sorted[count / 2],
	      sorted[count * 99 / 100], sorted[count - 1], leg->stats.flushes);
}

bool hvo_pages_run(const struct hvo_mode *mode, unsigned source, u64 pages)
{
	struct leg leg = {.mode = mode, .pages = MIN(pages, PAGES_MAX)};
	struct shootdown_stats after;
	u64 count;

	if (!hvo_leg_begin(&leg, source))
		return true;
	shootdown_stats_read(&leg.stats);
	hvo_busy_begin();
	count = measure(mode, leg.pages);
	hvo_busy_end();
	shootdown_stats_read(&after);
	leg.stats.flushes = after.flushes - leg.stats.flushes;
	for (unsigned op = 0; op < OPS && count > 0; op++) {
		if (want_hist)
			print_hist(mode->name, op_names[op], ns_of[op], count);
		if (want_csv)
			print_csv(mode->name, leg.source, op_names[op], ns_of[op], count);
		record(&leg, op_names[op], ns_of[op], count);
	}
	return count > 0;
}
