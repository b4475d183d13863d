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

enum { RUNS = 3 };

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
 * What memory can do: a plain clear of up to 1 GiB, more than caches hold, by one thread and by all. The bound that the rows are to
 * be compared with, per 64 bytes.
 */
struct probe {
	struct page **block;
};

static void clear_chunk(u64 start, u64 end, void *arg)
{
	const struct probe *probe = arg;

	for (u64 i = start; i < end; i++)
		clear_pages(page_address(probe->block[i]), BLOCK_FRAMES);
}

static u64 probe_once(struct probe *probe, u64 blocks, unsigned threads)
{
	struct padata_mt_job job = {.thread_fn = clear_chunk,
				    .arg = probe,
				    .size = blocks,
				    .min_chunk = 1,
				    .max_threads = threads,
				    .node = NODE_NONE};
	const u64 start = clock_ns();

	padata_run(&job);
	return clock_ns() - start;
}

static void probe_clear(void)
{
	const unsigned threads[] = {1, cpumask_weight(&cpus_online)};
	static struct page *block[512];
	struct probe probe = {.block = block};
	u64 blocks = 0;

	while (blocks < ARRAY_LEN(block) && (block[blocks] = page_alloc(BLOCK_ORDER, USE_MOVABLE, 0, NODE_NONE)))
		blocks++;
	for (unsigned i = 0; i < ARRAY_LEN(threads) && blocks > 0; i++) {
		u64 best = ~0ULL;

		for (unsigned run = 0; run <= RUNS; run++) /* the first has the host back the memory */
			best = MIN(best, probe_once(&probe, blocks, threads[i]));
		print("  plain clear of %llu MiB by %u thread%s: %llu.%03llu ms, %llu.%03llu ns per struct page's worth\n",
		      (unsigned long long)blocks * 2, threads[i], threads[i] == 1 ? "" : "s",
		      (unsigned long long)(best / NS_PER_MS), (unsigned long long)(best / NS_PER_US % 1000),
		      (unsigned long long)(best / (blocks * 32768)),
		      (unsigned long long)(best * 1000 / (blocks * 32768) % 1000));
		print("BENCH probe name=clear threads=%u bytes=%llu ns=%llu\n", threads[i],
		      (unsigned long long)blocks << BLOCK_SHIFT, (unsigned long long)best);
	}
	while (blocks > 0)
		page_free(block[--blocks]);
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
		probe_clear();
	for (unsigned i = 0; i < count; i++)
		record_row(&rows[i]);
	sections_close_all(&mm_kernel);
	return true;
}

BENCH(memmap, "make all struct pages with 0 to all CPUs of every node (S1)", bench_memmap);
