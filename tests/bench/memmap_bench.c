/*
 * The S1 table: making all struct pages with more and more threads per node (Jordan, "mm: parallelize
 * deferred_init_memmap()" v2, 2020-05).
 *
 * Each row closes every section that can be closed and opens them mapped again, all nodes at once; the slowest node
 * decides, as in the seed. `init` is that time; `boot` is this boot's time to ready with such an init instead of its own. Rows
 * are repeated and given as mean and standard deviation, after one run unmeasured that has the host back the memory.
 */
#include <arch/clear.h>
#include <arch/clock.h>

#include "kernel/bench.h"
#include "kernel/input.h"
#include "kernel/machine_page.h"
#include "kernel/padata.h"
#include "kernel/percpu.h"
#include "kernel/printk.h"
#include "kernel/verdict.h"
#include "mm/memmap_open.h"
#include "mm/zone.h"
#include "tests/bench/machine.h"
#include "tests/bench/sort.h"

enum { RUNS = 3, TURNS_MAX = 24, CLEAR_BLOCKS_MAX = 512 };

struct row {
	struct memmap_threads asked;
	unsigned threads; /* on the node that took longest */
	struct memmap_opened slowest;
	u64 ns[RUNS], mean, sd;
};

static u64 square_root(u64 x)
{
	u64 root = 0;

	for (u64 bit = 1ULL << 31; bit; bit >>= 1)
		if ((root + bit) * (root + bit) <= x)
			root += bit;
	return root;
}

static void row_statistics(struct row *row)
{
	u64 squares = 0;

	row->mean = 0;
	for (unsigned i = 0; i < RUNS; i++)
		row->mean += row->ns[i] / RUNS;
	for (unsigned i = 0; i < RUNS; i++) {
		const s64 off = ((s64)row->ns[i] - (s64)row->mean) / 1000; /* us: squares fit */

		squares += (u64)(off * off);
	}
	row->sd = square_root(squares / RUNS) * 1000;
}

/* One closing and opening; the node that took longest. */
static struct memmap_opened open_once(struct memmap_threads threads)
{
	static struct memmap_opened opened[ZONES_MAX];
	struct memmap_opened slowest = {0};

	sections_close_all(&mm_kernel);
	memmap_open_all(&mm_kernel, SECTION_MAPPED, threads, opened);
	for (node_t n = 0; n < mm_kernel.nodes; n++)
		if (opened[n].ns > slowest.ns)
			slowest = opened[n];
	return slowest;
}

static void run_row(struct row *row)
{
	for (unsigned i = 0; i < RUNS; i++) {
		row->slowest = open_once(row->asked);
		row->ns[i] = row->slowest.ns;
	}
	row->threads = row->slowest.threads;
	row_statistics(row);
}

static u64 row_pages(const struct row *row)
{
	return row->slowest.sections * SECTION_BLOCKS * BLOCK_FRAMES;
}

/* "12.3%" less than the base; negative when slower. */
static void print_speedup(u64 base, u64 now)
{
	const s64 tenths = base ? ((s64)base - (s64)now) * 1000 / (s64)base : 0;

	print(" %4lld.%lld%%", (long long)(tenths / 10), (long long)((tenths < 0 ? -tenths : tenths) % 10));
}

static void print_ms(u64 ns, u64 sd)
{
	print(" %6llu.%03llu (%5llu.%03llu)", (unsigned long long)(ns / NS_PER_MS),
	      (unsigned long long)(ns / NS_PER_US % 1000), (unsigned long long)(sd / NS_PER_MS),
	      (unsigned long long)(sd / NS_PER_US % 1000));
}

static void print_row(const struct row *row, const struct row *base)
{
	const u64 pages = row_pages(row), rest = machine_ready_ns();
	const u64 ps = pages ? row->mean * 1000 / pages : 0;

	if (row->asked.percent)
		print("  %3u%% (%4u)", row->asked.value, row->threads);
	else
		print("       (%4u)", row->asked.value);
	print_speedup(rest + base->mean, rest + row->mean);
	print_ms(rest + row->mean, row->sd);
	print_speedup(base->mean, row->mean);
	print_ms(row->mean, row->sd);
	print("  %4llu.%03llu %4llu.%02llu\n", (unsigned long long)(ps / 1000), (unsigned long long)(ps % 1000),
	      (unsigned long long)(ps ? 64000 / ps : 0), (unsigned long long)(ps ? 6400000 / ps % 100 : 0));
}

static void record_row(const struct row *row)
{
	print("BENCH memmap mode=%s node=%u threads=%u pages=%llu ns=%llu ns_sd=%llu chunks_min=%llu chunks_max=%llu"
	      " asked=%u%s\n",
	      row->asked.value ? "parallel" : "serial", row->slowest.node, row->threads, (unsigned long long)row_pages(row),
	      (unsigned long long)row->mean, (unsigned long long)row->sd, (unsigned long long)row->slowest.chunks_min,
	      (unsigned long long)row->slowest.chunks_max, row->asked.value, row->asked.percent ? "%" : "");
}

static void note_gain(const struct row *rows, size_t count)
{
	const struct row *best = &rows[0];

	for (size_t i = 1; i < count; i++)
		if (rows[i].mean < best->mean)
			best = &rows[i];
	page_gain("memmap", "one thread %llu us, %u threads %llu us, lazy: nothing at boot",
		  (unsigned long long)(rows[0].mean / NS_PER_US), best->threads, (unsigned long long)(best->mean / NS_PER_US));
}

/* Ours: opened on demand, which writes no struct page. */
static void print_lazy(void)
{
	static struct memmap_opened opened[ZONES_MAX];
	u64 ns = 0, sections = 0;

	sections_close_all(&mm_kernel);
	memmap_open_all(&mm_kernel, SECTION_ON_DEMAND, (struct memmap_threads){0}, opened);
	for (node_t n = 0; n < mm_kernel.nodes; n++) {
		ns += opened[n].ns;
		sections += opened[n].sections;
	}
	print("  lazy: nothing at boot; opening all of it on demand by one CPU takes %llu.%03llu ms\n",
	      (unsigned long long)(ns / NS_PER_MS), (unsigned long long)(ns / NS_PER_US % 1000));
	print("BENCH memmap mode=lazy node=0 threads=1 pages=%llu ns=%llu ns_sd=0 chunks_min=0 chunks_max=0\n",
	      (unsigned long long)(sections * SECTION_BLOCKS * BLOCK_FRAMES), (unsigned long long)ns);
	sections_close_all(&mm_kernel);
}

/*
 * The bound: as many bytes (up to 1 GiB) plainly cleared, by one thread and by all. Making and clearing take turns, because what
 * memory gives changes while one looks: a host may put two CPUs on one core for half a second, which costs both alike. Medians: a
 * turn in memory that the host has not backed yet takes ten times as long.
 */
struct bound {
	struct page *block[CLEAR_BLOCKS_MAX];
	u64 blocks;
	struct by_threads {
		unsigned threads;
		u64 pages, bytes; /* of the last turn */
		u64 make_ns[TURNS_MAX], clear_ns[TURNS_MAX];
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
	struct padata_mt_job job = {.thread_fn = clear_chunk,
				    .arg = bound,
				    .size = bound->blocks,
				    .min_chunk = 1,
				    .max_threads = threads,
				    .node = NODE_NONE};
	const u64 start = clock_ns();

	padata_run(&job);
	return clock_ns() - start;
}

static void bound_turn(struct bound *bound, struct by_threads *by, unsigned turn)
{
	const struct memmap_opened made = open_once((struct memmap_threads){by->threads, false});

	bound->blocks = 0;
	while (bound->blocks < MIN(made.sections, (u64)CLEAR_BLOCKS_MAX) &&
	       (bound->block[bound->blocks] = page_alloc(BLOCK_ORDER, USE_MOVABLE, 0, NODE_NONE)))
		bound->blocks++;
	by->clear_ns[turn] = clear_once(bound, by->threads);
	by->bytes = bound->blocks << BLOCK_SHIFT;
	by->make_ns[turn] = made.ns;
	by->pages = made.sections * SECTION_BLOCKS * BLOCK_FRAMES;
	while (bound->blocks > 0)
		page_free(bound->block[--bound->blocks]);
}

static void print_ps(u64 ps)
{
	print("%llu.%03llu", (unsigned long long)(ps / 1000), (unsigned long long)(ps % 1000));
}

static void print_bound(struct by_threads by[2], unsigned turns)
{
	u64 make[2], clear[2];

	print("  beside a plain clear of as many bytes, in turn, medians of %u:\n", turns);
	if (mm_kernel.nodes > 1)
		print("    (all nodes are made at once, so many threads on each: not comparable with a clear by so many in all)\n");
	for (unsigned i = 0; i < 2; i++) {
		sort_u64(by[i].make_ns, turns);
		sort_u64(by[i].clear_ns, turns);
		make[i] = by[i].pages ? by[i].make_ns[turns / 2] * 1000 / by[i].pages : 0;
		clear[i] = by[i].bytes ? by[i].clear_ns[turns / 2] * 1000 / (by[i].bytes / sizeof(struct page)) : 0;
		print("    %4u thread%s  struct pages ", by[i].threads, by[i].threads == 1 ? " " : "s");
		print_ps(make[i]);
		print(" ns each, clear ");
		print_ps(clear[i]);
		print(" ns per 64 bytes: ");
		print_ps(clear[i] ? make[i] * 1000 / clear[i] : 0);
		print("x\n");
		print("BENCH probe name=clear threads=%u bytes=%llu ns=%llu memmap_pages=%llu memmap_ns=%llu turns=%u\n",
		      by[i].threads, (unsigned long long)by[i].bytes,
		      (unsigned long long)by[i].clear_ns[turns / 2], (unsigned long long)by[i].pages,
		      (unsigned long long)by[i].make_ns[turns / 2], turns);
	}
	print("    %u threads make struct pages ", by[1].threads);
	print_ps(make[1] ? make[0] * 1000 / make[1] : 0);
	print(" times as fast as one, and clear ");
	print_ps(clear[1] ? clear[0] * 1000 / clear[1] : 0);
	print(" times as fast\n");
}

static void measure_bound(void)
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
	} while (turns < TURNS_MAX && clock_ns() - began < 3 * NS_PER_S && !input_stop_asked());
	print_bound(bound.by, turns);
}

static bool bench_memmap(void)
{
	static const struct memmap_threads asked[] = {{0, false}, {1, false}, {12, true}, {25, true}, {37, true},
						      {50, true}, {75, true}, {100, true}};
	static struct row rows[ARRAY_LEN(asked)];
	unsigned count = 0;

	if (open_once(asked[0]).sections == 0) {
		print("  # skipped: this machine has no section that can be closed and opened anew\n");
		verdict_count(0, 0, 1);
		return true;
	}
	print("Making all struct pages (Jordan, \"mm: parallelize deferred_init_memmap()\", 2020-05)\n"
	      "%u nodes, %u CPUs; the slowest node decides\n\n"
	      "  node%% (thr)  kernel boot: speedup, ms (sd)      memmap init: speedup, ms (sd)   ns/page  GB/s\n",
	      mm_kernel.nodes, cpumask_weight(&cpus_online));
	for (; count < ARRAY_LEN(asked) && !input_stop_asked(); count++) {
		rows[count] = (struct row){.asked = asked[count]};
		run_row(&rows[count]);
		print_row(&rows[count], &rows[0]);
	}
	if (count > 0)
		note_gain(rows, count);
	if (!input_stop_asked())
		print_lazy();
	if (!input_stop_asked())
		measure_bound();
	for (unsigned i = 0; i < count; i++)
		record_row(&rows[i]);
	sections_close_all(&mm_kernel);
	return true;
}

BENCH(memmap, "make all struct pages with 0 to all CPUs of every node (S1)", bench_memmap);
