/*
 * The bound of the table of the memmap series (Jordan 2020): clearing as many bytes (up to
 * 1 GiB), by one thread and by all. See memmap_bench.h.
 *
 * Making and clearing take turns, because the speed of memory changes during a measurement. A host
 * may put two CPUs on one core for half a second, which costs both alike. Medians are used, because
 * a turn in memory that the host has not backed yet takes ten times as long.
 *
 * RUN_TURNS turns in a row are a run. It says how many times as fast as one all threads make struct
 * pages (the gain), and how many times as fast they clear (the limit of this machine in this run).
 * Its figures are of the least times, because other work on the host only adds to a time, and adds
 * most to those of many threads.
 * A run is good if the gain is 0.9 for each thread, which is 1.8 for two, or within 5% of the
 * limit.
 *
 *	BENCH probe name=clear threads=C bytes=B ns=T memmap_pages=N memmap_ns=T turns=N (work of
 *		making, in all turns)
 *	BENCH memmap_limit threads=C run=R turns=N gain=X limit=X good=0|1
 */
#include "tests/bench/measure.h"
#include "tests/bench/memmap_bench.h"

enum {
	RUNS_MAX = 10,
	RUN_TURNS = 10,
	TURNS_MAX = RUNS_MAX * RUN_TURNS,
	SECONDS = 10,
	CLEAR_BLOCKS_MAX = 512,
};

bool memmap_bench_is_good(unsigned threads, u64 gain, u64 limit)
{
	return gain >= 900ULL * threads || gain * 100 >= limit * 95;
}

struct bound {
	struct page *block[CLEAR_BLOCKS_MAX];
	u64 blocks, most;
	struct by_threads {
		unsigned threads;
		u64 pages, bytes; /* of the last turn */
		u64 make_ns[TURNS_MAX], clear_ns[TURNS_MAX];
		struct leg_work work;
	} by[2];
};

static void clear_chunk(u64 start, u64 end, void *arg)
{
	const struct bound *bound = arg;

	for (u64 i = start; i < end; i++)
		clear_pages(page_address(bound->block[i]), BLOCK_FRAMES);
}

static u64 clear_once(struct bound *bound, unsigned threads)
{
	const u64 start = clock_ns();

	do_by(threads, clear_chunk, bound, bound->blocks);
	return clock_ns() - start;
}

static void bound_turn(struct bound *bound, struct by_threads *by, unsigned turn)
{
	const struct memmap_opened made = memmap_bench_open(
		&memmap_ways[WAY_EAGER], (struct memmap_threads){.value = by->threads}, &by->work);

	bound->blocks = 0;
	while (bound->blocks < MIN(made.sections, (u64)CLEAR_BLOCKS_MAX) &&
	       (bound->block[bound->blocks] = page_alloc(BLOCK_ORDER, USE_MOVABLE, 0, NODE_NONE)))
		bound->blocks++;
	by->clear_ns[turn] = clear_once(bound, by->threads);
	by->bytes = bound->blocks << BLOCK_SHIFT;
	by->make_ns[turn] = made.ns;
	by->pages = memmap_bench_pages(&made);
	leg_work_warm(&by->work, &bound->most, by->pages);
	while (bound->blocks > 0)
		page_free(bound->block[--bound->blocks]);
}

static u64 median_of(const u64 *value, unsigned count)
{
	u64 sorted[TURNS_MAX];

	for (unsigned i = 0; i < count; i++)
		sorted[i] = value[i];
	return median_u64(sorted, count);
}

static u64 least_of(const u64 *value, unsigned count)
{
	u64 least = ~0ULL;

	for (unsigned i = 0; i < count; i++)
		least = MIN(least, value[i]);
	return least;
}

/* How many times as long as `now` the time `base` is, in thousandths. */
static u64 times_of(u64 base, u64 now)
{
	return now ? base * 1000 / now : 0;
}

/* The ratio, with that of the lowest and of the highest turn. */
static void print_by(const struct by_threads *by, unsigned turns)
{
	const u64 make_ns = median_of(by->make_ns, turns),
		  clear_ns = median_of(by->clear_ns, turns);
	const u64 make = times_of(make_ns, by->pages),
		  clear = times_of(clear_ns, by->bytes / sizeof(struct page));
	u64 low = ~0ULL, high = 0;

	for (unsigned i = 0; i < turns; i++) {
		const u64 one =
			times_of(times_of(by->make_ns[i], by->pages),
				 times_of(by->clear_ns[i], by->bytes / sizeof(struct page)));

		low = MIN(low, one);
		high = MAX(high, one);
	}
	print("    %4u thread%s  struct pages %llu.%03llu ns each, clear %llu.%03llu ns per "
	      "64 bytes: %llu.%03llux (%llu.%03llu to %llu.%03llu)\n",
	      by->threads, by->threads == 1 ? " " : "s", THOUSANDTHS(make), THOUSANDTHS(clear),
	      THOUSANDTHS(times_of(make, clear)), THOUSANDTHS(low), THOUSANDTHS(high));
	print("BENCH probe name=clear threads=%u bytes=%llu ns=%llu memmap_pages=%llu "
	      "memmap_ns=%llu turns=%u",
	      by->threads, by->bytes, clear_ns, by->pages, make_ns, turns);
	leg_work_print(&by->work);
	print("\n");
}

/* Print and record one run, which begins with turn `first`. Returns true if it is good. */
static bool print_run(const struct by_threads by[2], unsigned run, unsigned first, unsigned turns)
{
	const unsigned threads = by[1].threads;
	const u64 gain = times_of(least_of(by[0].make_ns + first, turns),
				  least_of(by[1].make_ns + first, turns)),
		  limit = times_of(least_of(by[0].clear_ns + first, turns),
				   least_of(by[1].clear_ns + first, turns));
	const bool good = memmap_bench_is_good(threads, gain, limit);

	print("    %3u          %llu.%03llu        %llu.%03llu  %s\n", run, THOUSANDTHS(gain),
	      THOUSANDTHS(limit), good ? "good" : "less");
	print("BENCH memmap_limit threads=%u run=%u turns=%u gain=%llu.%03llu limit=%llu.%03llu "
	      "good=%u\n",
	      threads, run, turns, THOUSANDTHS(gain), THOUSANDTHS(limit), good);
	return good;
}

/* The turns of an incomplete run are left out, unless there are no others. */
static void print_runs(const struct by_threads by[2], unsigned turns)
{
	const unsigned runs = MAX(turns / RUN_TURNS, 1u), each = MIN(turns, (unsigned)RUN_TURNS);
	unsigned good = 0;

	print("    run  %3u threads : 1   limit : 1    (least times of %u turns)\n", by[1].threads,
	      each);
	for (unsigned run = 0; run < runs; run++)
		good += print_run(by, run + 1, run * each, each);
	print("    %u threads make struct pages 0.9 times as fast for each thread or within 5%% of "
	      "the limit in %u of %u runs\n",
	      by[1].threads, good, runs);
}

static void print_bound(const struct by_threads by[2], unsigned turns)
{
	print("  beside a plain clear of as many bytes, in turn, medians of %u:\n", turns);
	if (mm_kernel.nodes > 1)
		print("    (not comparable: the nodes are made at once, each by this many threads; "
		      "a clear uses this many in all)\n");
	print_by(&by[0], turns);
	print_by(&by[1], turns);
	if (mm_kernel.nodes == 1 && by[1].threads > 1)
		print_runs(by, turns);
}

void memmap_bench_bound(void)
{
	static struct bound bound;
	const u64 began = clock_ns();
	unsigned turns = 0;

	bound.by[0] = (struct by_threads){.threads = 1};
	bound.by[1] = (struct by_threads){.threads = cpumask_weight(&cpus_online)};
	do {
		bound_turn(&bound, &bound.by[0], turns);
		bound_turn(&bound, &bound.by[1], turns);
		turns++;
	} while (turns < TURNS_MAX && clock_ns() - began < SECONDS * NS_PER_S &&
		 !input_stop_asked());
	print_bound(bound.by, turns);
}
