/*
 * The cost of memmap=lazy when all struct pages are needed after all, and that of opening on
 * demand. See memmap_bench.h.
 *
 *   open    Page tables and block records of every section; no struct page is written.
 *   all     Then each bare block gets its eight frames of struct pages. One CPU takes all memory in
 *           halves of blocks, as a program would that uses every page.
 */
#include "tests/bench/measure.h"
#include "tests/bench/memmap_bench.h"

/*
 * Hosted with real mappings, making all struct pages takes a system call for each frame; there are
 * fewer runs then.
 */
enum { PIECE_ORDER = BLOCK_ORDER - 1, SECONDS = 20 };

struct measured {
	u64 pages, most;
	u64 ns[MEMMAP_RUNS], first_ns;
	unsigned runs;
	struct leg_work work;
};

/* A run in cold memory, whose frames are used for the first time, is not one of the runs. */
static void add(struct measured *m, u64 pages, u64 ns)
{
	m->pages = pages;
	if (leg_work_warm(&m->work, &m->most, pages))
		m->ns[m->runs++] = ns;
	else
		m->first_ns = ns;
}

static void make_all(struct measured *m)
{
	struct page *chain = NULL;
	u64 ns;

	leg_work_prepare(&m->work);
	leg_work_begin(&m->work);
	ns = clock_ns();
	chain_take_all(&chain, &mm_kernel, PIECE_ORDER, 0, NODE_NONE);
	ns = clock_ns() - ns;
	leg_work_end(&m->work);
	add(m, chain_give(&chain, &mm_kernel) * order_pages(PIECE_ORDER), ns);
}

static void report(const char *what, const char *said, const char *unit, struct measured *m)
{
	const struct spread spread = spread_of(m->ns, m->runs);

	if (m->runs == 0 || m->pages == 0)
		return;
	print("    %-28s  %4llu.%03llu (%4llu.%03llu)  %4llu.%03llu ns per %s", said,
	      THOUSANDTHS(spread.median / NS_PER_US), THOUSANDTHS(spread.sd / NS_PER_US),
	      THOUSANDTHS(spread.median * 1000 / m->pages), unit);
	if (m->first_ns)
		print(", first touch %4llu.%03llu", THOUSANDTHS(m->first_ns * 1000 / m->pages));
	print("\nBENCH memmap_lazy what=%s threads=1 pages=%llu ns=%llu ns_sd=%llu runs=%u "
	      "ns_first=%llu",
	      what, m->pages, spread.median, spread.sd, spread.runs, m->first_ns);
	leg_work_print(&m->work);
	print("\n");
}

void memmap_bench_lazy(void)
{
	/* no opening is the first: bench_memmap() has opened all sections before */
	struct measured opening = {.most = ~0ULL}, all = {0};
	const u64 until = clock_ns() + SECONDS * NS_PER_S;

	while (all.runs < MEMMAP_RUNS && !input_stop_asked() &&
	       (all.runs == 0 || clock_ns() < until)) {
		const struct memmap_opened opened = memmap_bench_open(
			&memmap_ways[WAY_LAZY], (struct memmap_threads){.value = 1}, &opening.work);

		if (opening.runs < MEMMAP_RUNS)
			add(&opening, memmap_bench_pages(&opened), opened.ns);
		make_all(&all);
	}
	sections_close_all(&mm_kernel);
	print("\n  lazy makes nothing at boot. Later, by one CPU, ms (sd), medians of %u in "
	      "turn:\n",
	      all.runs);
	report("open", "open all sections", "page opened: no struct page is written", &opening);
	report("all", "then make all struct pages", "struct page", &all);
}
