/*
 * The allocator once everything it needs is open and split. The work that memmap=lazy postpones
 * must not return as a slower steady state. One boot prints the rows of one style; compare a boot
 * with memmap=lazy to one with memmap=parallel.
 *
 *   pair0, pair9   one page of 4 KiB, or 2 MiB, allocated and freed, over and over
 *   bulk0, bulk9   many allocated, then freed in the same order
 *
 * The first run of a row is not measured, because it opens sections and splits blocks. Of the
 * others the fastest is shown. With one CPU and -icount shift=0 a nanosecond is an instruction, and
 * two boots can be compared to the digit.
 */
#include <arch/clock.h>

#include "kernel/core/printk.h"
#include "kernel/run/bench.h"
#include "mm/page/page_alloc.h"
#include "mm/zone/memmap_open.h"

enum { RUNS = 5, PAIRS = 10000, PAGES = 16384, HUGE_PAIRS = 1000, HUGE_PAGES = 32 };

struct row {
	const char *name;
	unsigned order;
	u64 count;
	bool pairs; /* free each before the next is allocated */
	u64 alloc_ns, free_ns;
};

static bool run_pairs(struct row *row)
{
	const u64 start = clock_ns();

	for (u64 i = 0; i < row->count; i++) {
		struct page *page = page_alloc(row->order, USE_MOVABLE, 0, NODE_NONE);

		if (!page)
			return false;
		page_free(page);
	}
	row->alloc_ns = MIN(row->alloc_ns, clock_ns() - start);
	return true;
}

static bool run_bulk(struct row *row)
{
	static struct page *pages[PAGES];
	u64 start = clock_ns(), got = 0;

	while (got < row->count && (pages[got] = page_alloc(row->order, USE_MOVABLE, 0, NODE_NONE)))
		got++;
	row->alloc_ns = MIN(row->alloc_ns, clock_ns() - start);
	start = clock_ns();
	for (u64 i = 0; i < got; i++)
		page_free(pages[i]);
	row->free_ns = MIN(row->free_ns, clock_ns() - start);
	return got == row->count;
}

static bool run_row(struct row *row)
{
	for (unsigned run = 0; run <= RUNS; run++) {
		if (run <= 1)
			row->alloc_ns = row->free_ns = ~0ULL;
		if (!(row->pairs ? run_pairs(row) : run_bulk(row)))
			return false;
	}
	return true;
}

static void print_op(const struct row *row, const char *op, u64 ns)
{
	const u64 tenths = ns * 10 / row->count;

	print("  %-6s %-6s %8llu %10llu.%llu\n", row->name, op, row->count, tenths / 10,
	      tenths % 10);
	print("BENCH alloc test=%s threads=1 op=%s ns=%llu operations=%llu style=%s\n", row->name,
	      op, ns, row->count, memmap_style() == SECTION_MAPPED ? "mapped" : "on-demand");
}

static bool bench_steady(void)
{
	struct row rows[] = {
		{.name = "pair0", .count = PAIRS, .pairs = true},
		{.name = "bulk0", .count = PAGES},
		{.name = "pair9", .order = BLOCK_ORDER, .count = HUGE_PAIRS, .pairs = true},
		{.name = "bulk9", .order = BLOCK_ORDER, .count = HUGE_PAGES}};

	print("The allocator in its steady state, struct pages made %s\n\n  test   op     "
	      "operations   ns each\n",
	      memmap_style() == SECTION_MAPPED ? "at boot" : "on demand");
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		if (!run_row(&rows[i])) {
			print("  %s: too little memory\n", rows[i].name);
			return false;
		}
		print_op(&rows[i], rows[i].pairs ? "pair" : "alloc", rows[i].alloc_ns);
		if (!rows[i].pairs)
			print_op(&rows[i], "free", rows[i].free_ns);
	}
	return true;
}

BENCH(steady, "the allocator when all the memory it needs is open: memmap=lazy against parallel",
      bench_steady);
