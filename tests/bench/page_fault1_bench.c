/*
 * will-it-scale's page_fault1, with which Huang measured Weiner's series (thread of "mm:
 * page_alloc: remove pcppage migratetype caching", 2023-09). Each CPU maps a region of its own,
 * touches it page by page, unmaps it, and begins again. An operation is one touched page; the
 * result is operations per second, all CPUs together.
 *
 *   map -> touch, touch, touch ... 32768 of 4 KiB -> unmap      again and again, on 1, 2, 4 ... all
 *                                                               CPUs
 *
 * The region is 128 MiB there and here, or less if the CPUs have less memory each. As in his runs
 * the lists hold a whole region, so that pages come only from them and go back only to them; for
 * that the machine needs 1 GiB above 4 GiB for each CPU. `given back` counts the pages that went to
 * the zone nevertheless. All ways of mm/page/pcp_types.c take turns; the first turn of each is not
 * counted.
 *
 * As there, most of the time goes to page clearing, page tables and the fault itself.
 */
#include "mm/page/pcp_types.h"
#include "tests/bench/measure.h"
#include "tests/bench/work.h"

#define REGION_BYTES MIB(128) /* of each CPU */

enum { SAMPLES_MAX = 5, WAYS_MAX = 6 };

static u64 sample_ms = 100;
OPTION_U64(bench.page_fault1.ms, sample_ms, 1, 60000, "milliseconds of a sample");

static u64 sample_count = SAMPLES_MAX;
OPTION_U64(bench.page_fault1.samples, sample_count, 1, SAMPLES_MAX, "samples of each row and way");

struct sample {
	u64 touched, ns;
	struct pcp_stats stats;
	struct leg_work work;
};

static struct sample samples[WAYS_MAX][SAMPLES_MAX]; /* of one row */
static unsigned ways;

/* ---- the work of a CPU ---- */

struct crowd {
	u64 bytes, deadline;
	u64 touched; /* atomic */
	u32 failed;  /* CPUs that got no mapping; atomic */
};

/*
 * Map, touch and unmap one region. Returns how many pages were touched, 0 if it could not be
 * mapped.
 */
static u64 testcase(u64 bytes)
{
	volatile char *region = huge_map(bytes, PAGE_SIZE, 0);
	u64 touched = 0;

	if (!region)
		return 0;
	for (u64 at = 0; at < bytes; at += PAGE_SIZE, touched++)
		region[at] = 0;
	huge_unmap((void *)region);
	return touched;
}

static void run_cpu(u64 first, u64 last, void *arg)
{
	struct crowd *crowd = arg;
	u64 touched = 0, more;

	for (u64 i = first; i < last; i++) {
		do {
			more = testcase(crowd->bytes);
			touched += more;
		} while (more > 0 && clock_ns() < crowd->deadline);
		if (more == 0)
			atomic_fetch_add(&crowd->failed, 1);
	}
	atomic_fetch_add(&crowd->touched, touched);
}

/* A sample is warm if one of the same way had regions as large, all together, before. */
static bool run_sample(struct sample *sample, unsigned way, u64 bytes, unsigned cpus)
{
	static u64 most[WAYS_MAX];
	const struct pcp_stats before = pcp_stats(&mm_kernel);
	struct crowd crowd = {.bytes = bytes};

	leg_work_warm(&sample->work, &most[way], bytes * cpus);
	leg_work_begin(&sample->work);
	sample->ns = clock_ns();
	crowd.deadline = sample->ns + sample_ms * NS_PER_MS;
	do_by(cpus, run_cpu, &crowd, cpus);
	sample->ns = clock_ns() - sample->ns;
	leg_work_end(&sample->work);
	sample->stats = pcp_stats_since(&before);
	sample->touched = crowd.touched;
	return crowd.failed == 0 && crowd.touched > 0;
}

/* ---- rows ---- */

static u64 per_second(const struct sample *sample)
{
	return sample->touched * 1000 / MAX(sample->ns / NS_PER_MS, 1);
}

static u64 median_rate(const struct sample sample[SAMPLES_MAX])
{
	u64 rate[SAMPLES_MAX];

	for (unsigned s = 0; s < sample_count; s++)
		rate[s] = per_second(&sample[s]);
	return median_u64(rate, sample_count);
}

/* Run all ways in turn. A sample of each way that does not count fills the lists before. */
static bool run_row(u64 bytes, unsigned cpus)
{
	bool ok = true;

	for (unsigned s = 0; s < sample_count && ok && !input_stop_asked(); s++) {
		for (unsigned i = 0; i < ways && ok; i++) {
			const unsigned way = (s + i) % ways;
			struct sample *sample = &samples[way][s], first = {0};

			*sample = first;
			leg_work_prepare(&sample->work);
			pcp_set_types(&mm_kernel, &pcp_types[way]);
			ok = run_sample(&first, way, bytes, cpus) &&
			     run_sample(sample, way, bytes, cpus);
		}
	}
	return ok;
}

/* The rate beside that of the first way: the medians, and the lowest and the highest of a turn. */
static void format_change(char *text, size_t size, unsigned way)
{
	const u64 change = median_rate(samples[way]) * 10000 / MAX(median_rate(samples[0]), 1);
	u64 low = ~0ULL, high = 0;

	for (unsigned s = 0; s < sample_count; s++) {
		const u64 one =
			per_second(&samples[way][s]) * 10000 / MAX(per_second(&samples[0][s]), 1);

		low = MIN(low, one);
		high = MAX(high, one);
	}
	format(text, size, "%llu.%02llu%% (%llu to %llu)", change / 100, change % 100, low / 100,
	       high / 100);
}

static void print_row(unsigned cpus)
{
	char change[64];

	for (unsigned way = 0; way < ways; way++) {
		const struct sample *sample = &samples[way][sample_count - 1];

		format_change(change, sizeof(change), way);
		print("  %5u %-7s %10llu  %-20s %10llu.%03llu %12llu %10llu\n", cpus,
		      pcp_types[way].name, median_rate(samples[way]), change,
		      THOUSANDTHS(sample->stats.lookups * 1000 / sample->touched),
		      sample->stats.drain_lookups, sample->stats.drained);
	}
}

static void print_records(u64 bytes, unsigned cpus)
{
	for (unsigned s = 0; s < sample_count; s++) {
		for (unsigned way = 0; way < ways; way++) {
			const struct sample *sample = &samples[way][s];

			print("BENCH page_fault type_cache=%s cpus=%u run=%u region_bytes=%llu "
			      "touched=%llu ns=%llu ops=%llu "
			      "lookups=%llu fetch_lookups=%llu drain_lookups=%llu drained=%llu",
			      pcp_types[way].name, cpus, s + 1, bytes, sample->touched, sample->ns,
			      per_second(sample), sample->stats.lookups,
			      sample->stats.fetch_lookups, sample->stats.drain_lookups,
			      sample->stats.drained);
			leg_work_print(&sample->work);
			print("\n");
		}
	}
}

/*
 * Region of each CPU. All regions together take a quarter of the free memory, so that the lists may
 * hold as much again.
 */
static u64 region_for(unsigned cpus)
{
	struct mm_usage usage;
	u64 share;

	mm_usage(&usage);
	share = (usage.free + usage.unopened) / 4 / cpus * PAGE_SIZE;
	return MAX(ALIGN_DOWN(MIN(REGION_BYTES, share), MIB(1)), MIB(1));
}

static bool rows(void)
{
	const unsigned all = cpumask_weight(&cpus_online);
	unsigned cpus = 0;

	for (ways = 0; ways < WAYS_MAX && pcp_types[ways].name;)
		ways++;
	while (cpus < all) {
		cpus = MIN(MAX(cpus * 2, 1), all);
		if (!run_row(region_for(all), cpus))
			return false;
		if (input_stop_asked())
			break;
		print_row(cpus);
		print_records(region_for(all), cpus);
	}
	print("\n");
	return true;
}

static bool page_fault1_bench(void)
{
	const struct pcp_types *types = mm_kernel.pcp_types;
	bool ok;

	print("\nFaulting a region in and unmapping it: will-it-scale's page_fault1 (Huang, thread "
	      "of \"mm: page_alloc: remove pcppage "
	      "migratetype caching\", 2023-09)\n%llu MiB each, pages of 4 KiB; medians of %llu "
	      "samples of %llu ms%s\n\n"
	      "   CPUs types      pages/s  types:on (range)     look-ups freed  given back: "
	      "look-ups     pages\n",
	      region_for(cpumask_weight(&cpus_online)) / MIB(1), sample_count, sample_ms,
	      sample_count > 1 ? "" : ", which say nothing of how much runs differ");
	ok = rows();
	pcp_set_types(&mm_kernel, types);
	if (!ok)
		pr_err("page_fault1: no memory for the regions");
	return ok;
}

BENCH(page_fault1, "pages of 4 KiB faulted in and unmapped, with and without a cached migratetype",
      page_fault1_bench);
