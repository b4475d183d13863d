/*
 * The bound of the table of the memmap series (Jordan 2020): clearing as many bytes (up to
 * 1 GiB), by one thread and by all. See memmap_bench.h.
 *
 * Making and clearing take turns, because the speed of memory changes during a measurement. A host
 * may put two CPUs on one core for half a second, which costs both alike. Medians are used, because
 * a turn in memory that the host has not backed yet takes ten times as long.
 */
#include <arch/clear.h>
#include <arch/clock.h>

#include "kernel/console/input.h"
#include "kernel/core/padata.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "mm/memmap/zone.h"
#include "tests/bench/memmap_bench.h"

enum { TURNS_MAX = 24, CLEAR_BLOCKS_MAX = 512 };

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
	const struct memmap_opened made = memmap_bench_open(
		&memmap_ways[WAY_EAGER], (struct memmap_threads){.value = by->threads});

	bound->blocks = 0;
	while (bound->blocks < MIN(made.sections, (u64)CLEAR_BLOCKS_MAX) &&
	       (bound->block[bound->blocks] = page_alloc(BLOCK_ORDER, USE_MOVABLE, 0, NODE_NONE)))
		bound->blocks++;
	by->clear_ns[turn] = clear_once(bound, by->threads);
	by->bytes = bound->blocks << BLOCK_SHIFT;
	by->make_ns[turn] = made.ns;
	by->pages = memmap_bench_pages(&made);
	while (bound->blocks > 0)
		page_free(bound->block[--bound->blocks]);
}

static void print_ps(u64 ps)
{
	print("%llu.%03llu", ps / 1000, ps % 1000);
}

static void print_bound(struct by_threads by[2], unsigned turns)
{
	u64 make[2], clear[2];

	print("  beside a plain clear of as many bytes, in turn, medians of %u:\n", turns);
	if (mm_kernel.nodes > 1)
		print("    (not comparable: the nodes are made at once, each by this many threads; "
		      "a clear uses this many in all)\n");
	for (unsigned i = 0; i < 2; i++) {
		sort_u64(by[i].make_ns, turns);
		sort_u64(by[i].clear_ns, turns);
		make[i] = by[i].pages ? by[i].make_ns[turns / 2] * 1000 / by[i].pages : 0;
		clear[i] = by[i].bytes ? by[i].clear_ns[turns / 2] * 1000 /
						 (by[i].bytes / sizeof(struct page))
				       : 0;
		print("    %4u thread%s  struct pages ", by[i].threads,
		      by[i].threads == 1 ? " " : "s");
		print_ps(make[i]);
		print(" ns each, clear ");
		print_ps(clear[i]);
		print(" ns per 64 bytes: ");
		print_ps(clear[i] ? make[i] * 1000 / clear[i] : 0);
		print("x\n");
		print("BENCH probe name=clear threads=%u bytes=%llu ns=%llu memmap_pages=%llu "
		      "memmap_ns=%llu turns=%u\n",
		      by[i].threads, by[i].bytes, by[i].clear_ns[turns / 2], by[i].pages,
		      by[i].make_ns[turns / 2], turns);
	}
	print("    %u threads make struct pages ", by[1].threads);
	print_ps(make[1] ? make[0] * 1000 / make[1] : 0);
	print(" times as fast as one, and clear ");
	print_ps(clear[1] ? clear[0] * 1000 / clear[1] : 0);
	print(" times as fast\n");
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
	} while (turns < TURNS_MAX && clock_ns() - began < 3 * NS_PER_S && !input_stop_asked());
	print_bound(bound.by, turns);
}
