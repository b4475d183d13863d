/*
 * The table of the memmap series (Jordan, "mm: parallelize deferred_init_memmap()" v2,
 * 2020-05): making all struct pages with more and more threads per node.
 *
 *   (   0)     before the series: one CPU of each node, no job
 *   (   1) ..  the series, with this many threads on each node
 *   ours       the series' job, struct pages streamed past the caches, memory freed a section at a
 *              time
 *
 * Each measurement closes every section that can be closed and opens them again, all nodes at once.
 * The slowest node decides, as in the original. Rows take turns, MEMMAP_RUNS times.
 *
 * Before that, each row is measured once in memory that has held no struct pages;
 * section_place_memmaps() moves their places for that. On a machine whose host backs memory as it
 * is touched, a boot meets that state.
 *
 * The original's other columns, "kernel boot", come from machines that are booted as many times:
 * `make bench T=memmap`.
 */
#include "tests/bench/memmap_bench.h"

#include "mm/zone/section_memmap.h"
#include "tests/bench/measure.h"

enum { ROWS_MAX = 11 };

struct row {
	const struct memmap_way *way;
	struct memmap_threads asked;
	struct memmap_opened last; /* the slowest node's, in the last run */
	/* time in memory that held no struct pages before; 0: there is none */
	u64 first_ns;
	u64 ns[MEMMAP_RUNS];
	unsigned runs;
	struct leg_work work;
	struct spread spread;
	s64 saved_low, saved_high; /* of the base's time in the same turn, in tenths of a percent */
};

static struct row rows[ROWS_MAX];
static unsigned row_count;

/* ---- measuring ---- */

struct memmap_opened memmap_bench_slowest(const struct memmap_opened *opened)
{
	struct memmap_opened slowest = opened[0];

	for (node_t n = 1; n < mm_kernel.nodes; n++)
		if (opened[n].ns > slowest.ns)
			slowest = opened[n];
	return slowest;
}

struct memmap_opened memmap_bench_open(const struct memmap_way *way, struct memmap_threads threads,
				       struct leg_work *work)
{
	static struct memmap_opened opened[ZONES_MAX];

	leg_work_prepare(work);
	sections_close_all(&mm_kernel);
	leg_work_begin(work);
	memmap_open_all(&mm_kernel, way, threads, opened);
	leg_work_end(work);
	return memmap_bench_slowest(opened);
}

u64 memmap_bench_pages(const struct memmap_opened *opened)
{
	return opened->sections * SECTION_FRAMES;
}

/*
 * Move struct pages to places that have held none: for each turn, as many blocks away from their
 * homes as the zone has sections. False if a zone has no such place.
 */
static bool move_homes(unsigned turn)
{
	bool all = true;

	sections_close_all(&mm_kernel);
	for (unsigned z = 0; z < mm_kernel.zones; z++) {
		struct zone *zone = &mm_kernel.zone[z];
		const u64 sections =
			DIV_ROUND_UP(zone->end_pfn - zone->start_pfn, SECTION_FRAMES) + 1;

		section_place_memmaps(zone, (u32)(turn * sections));
		all &= zone->first_home != BLOCK_NONE;
	}
	return all;
}

static void measure_first_touch(void)
{
	for (unsigned i = 0; i < row_count && !input_stop_asked() && move_homes(i); i++)
		rows[i].first_ns =
			memmap_bench_open(rows[i].way, rows[i].asked, &(struct leg_work){0}).ns;
	move_homes(0);
}

/* How much less time than the base, in tenths of a percent, negative if slower. */
static s64 saved_tenths(u64 base, u64 ns)
{
	return base ? ((s64)base - (s64)ns) * 1000 / (s64)base : 0;
}

static void compare_turns(struct row *row)
{
	for (unsigned run = 0; run < row->runs; run++) {
		const s64 saved = saved_tenths(rows[0].ns[run], row->ns[run]);

		row->saved_low = run == 0 ? saved : MIN(row->saved_low, saved);
		row->saved_high = run == 0 ? saved : MAX(row->saved_high, saved);
	}
}

static void measure_in_turn(void)
{
	const struct memmap_threads all = {.value = 100, .percent = true};
	struct leg_work work = {0};
	struct memmap_opened opened;
	u64 most = 0;

	/* unmeasured, so that the host backs the memory */
	opened = memmap_bench_open(&memmap_ways[WAY_EAGER], all, &work);
	leg_work_warm(&work, &most, memmap_bench_pages(&opened));
	for (unsigned run = 0; run < MEMMAP_RUNS; run++) {
		for (unsigned i = 0; i < row_count && !input_stop_asked(); i++) {
			rows[i].last = memmap_bench_open(rows[i].way, rows[i].asked, &rows[i].work);
			leg_work_warm(&rows[i].work, &most, memmap_bench_pages(&rows[i].last));
			rows[i].ns[rows[i].runs++] = rows[i].last.ns;
		}
	}
	for (unsigned i = 0; i < row_count; i++)
		compare_turns(&rows[i]);
	for (unsigned i = 0; i < row_count; i++)
		rows[i].spread = spread_of(rows[i].ns, rows[i].runs);
}

/* ---- rows ---- */

static void add_row(unsigned way, unsigned value, bool percent)
{
	rows[row_count++] = (struct row){.way = &memmap_ways[way],
					 .asked = {.value = value, .percent = percent}};
}

/* Number of threads that a share of the CPUs is on the largest node. */
static unsigned threads_of(unsigned percent)
{
	unsigned most = 1;

	for (node_t n = 0; n < mm_kernel.nodes; n++)
		if (cpu_first_of_node(n) != CPU_NONE)
			most = MAX(most,
				   memmap_threads_on(n, (struct memmap_threads){.value = percent,
										.percent = true}));
	return most;
}

/*
 * Choose the rows. A share that means as many threads as the row before is left out, as in the
 * original.
 */
static void choose_rows(void)
{
	static const unsigned percent[] = {12, 25, 37, 50, 75, 100};
	unsigned threads = 1;

	row_count = 0;
	add_row(WAY_SERIAL, 0, false);
	add_row(WAY_PARALLEL, 1, false);
	for (unsigned i = 0; i < ARRAY_LEN(percent); i++) {
		if (threads_of(percent[i]) > threads)
			add_row(WAY_PARALLEL, percent[i], true);
		threads = threads_of(percent[i]);
	}
	add_row(WAY_EAGER, 1, false);
	if (threads > 1)
		add_row(WAY_EAGER, 100, true);
}

/* ---- output ---- */

/*
 * Print how much less time than the base, in percent, with the range of the turns; "noise" where
 * runs scatter more than the difference.
 */
static void print_speedup(const struct row *row)
{
	const struct spread base = rows[0].spread, now = row->spread;
	const s64 tenths = saved_tenths(base.median, now.median);
	char range[32];

	if (!spread_differ(base, now))
		print("    noise");
	else
		print(" %6s%lld.%lld%%", tenths < 0 ? "-" : "",
		      (tenths < 0 ? -tenths : tenths) / 10, (tenths < 0 ? -tenths : tenths) % 10);
	format(range, sizeof(range), "(%lld to %lld)", row->saved_low / 10, row->saved_high / 10);
	print(" %-12s", range);
}

static void print_row(const struct row *row)
{
	const u64 pages = MAX(memmap_bench_pages(&row->last), 1),
		  ps = row->spread.median * 1000 / pages;

	print("  %-9s", row->way->name);
	if (row->asked.percent)
		print("%3u%% (%4u)", row->asked.value, row->last.threads);
	else
		print("     (%4u)", row->asked.value);
	if (row == &rows[0])
		print("       -- %-12s", "");
	else
		print_speedup(row);
	print("  %4llu.%03llu (%4llu.%03llu)  %4llu.%03llu     ",
	      THOUSANDTHS(row->spread.median / NS_PER_US), THOUSANDTHS(row->spread.sd / NS_PER_US),
	      THOUSANDTHS(ps));
	if (row->first_ns)
		print("%4llu.%03llu", THOUSANDTHS(row->first_ns * 1000 / pages));
	else
		print("       -");
	print("  %4llu.%02llu\n", HUNDREDTHS(ps ? 6400000 / ps : 0));
}

static void record_row(const struct row *row)
{
	print("BENCH memmap mode=%s node=%u threads=%u pages=%llu ns=%llu ns_sd=%llu "
	      "ns_min=%llu ns_max=%llu chunks_min=%llu chunks_max=%llu"
	      " asked=%u%s runs=%u ns_first=%llu",
	      row->way->name, row->last.node, row->last.threads, memmap_bench_pages(&row->last),
	      row->spread.median, row->spread.sd, row->spread.low, row->spread.high,
	      row->last.chunks_min, row->last.chunks_max, row->asked.value,
	      row->asked.percent ? "%" : "", row->runs, row->first_ns);
	leg_work_print(&row->work);
	print("\n");
}

static void print_rows(void)
{
	print("                        memmap init                                  "
	      "ns per struct page\n"
	      "  way     node%% (thr)    speedup (range)           ms       (sd)       warm  "
	      "first touch  GB/s\n");
	for (unsigned i = 0; i < row_count; i++)
		if (rows[i].runs > 0)
			print_row(&rows[i]);
}

static bool bench_memmap(void)
{
	if (memmap_bench_open(&memmap_ways[WAY_LAZY], (struct memmap_threads){.value = 1},
			      &(struct leg_work){0})
		    .sections == 0) {
		print("  # skipped: this machine has no section that can be closed and opened "
		      "anew\n");
		verdict_count(0, 0, 1);
		return true;
	}
	choose_rows();
	print("Making all struct pages (Jordan, \"mm: parallelize deferred_init_memmap()\", "
	      "2020-05)\n"
	      "%u nodes, %u CPUs; the slowest node decides; %u ways in turn, medians of %u\n\n",
	      mm_kernel.nodes, cpumask_weight(&cpus_online), row_count, MEMMAP_RUNS);
	measure_first_touch();
	measure_in_turn();
	print_rows();
	for (unsigned i = 0; i < row_count; i++)
		if (rows[i].runs > 0)
			record_row(&rows[i]);
	if (!input_stop_asked())
		memmap_bench_lazy();
	if (!input_stop_asked())
		memmap_bench_bound();
	sections_close_all(&mm_kernel);
	return true;
}

BENCH(memmap, "make all struct pages with 0 to all CPUs of every node (memmap series)",
      bench_memmap);
