/*
 * The S2 table: clearing pages one by one and in whole extents, with every instruction this CPU has (Arora,
 * "mm/clear_huge_page: use multi-page clearing", 2023-04).
 *
 *   4K   pages as the allocator's lists hand them out: the last one given back first, so out of the cache
 *   2M   huge pages, touched at their start: 512 MiB, more than caches hold, or what the slowest variant can do in TURN_NS
 *   1G   one page; by one CPU, and in slices by all
 *
 * Variants take turns for BUDGET_NS, and the fastest time of each page counts: what disturbs a machine only ever adds. The
 * default choice is a variant of its own in these turns. The limit beside them is a plain non-temporal fill, nothing
 * around it.
 */
#include <arch/clock.h>
#include <arch/pmu.h>

#include "kernel/bench.h"
#include "kernel/input.h"
#include "kernel/machine_page.h"
#include "kernel/percpu.h"
#include "kernel/printk.h"
#include "kernel/verdict.h"
#include "mm/clear.h"
#include "mm/mm.h"
#include "mm/page.h"

enum { ROUNDS_MAX = 2000, BLOCKS_MAX = 256, SMALL_PAGES = 64, INSNS_MAX = 8, WAYS_MAX = 2 * INSNS_MAX + 3 };
#define TURN_NS (100 * NS_PER_MS)
#define BUDGET_NS (3 * NS_PER_S)

/* One row's column. */
struct way {
	const char *mode, *insn;
	struct clear_how how;
	bool plain; /* the limit: the instruction on the whole buffer, no order and no slices */
	u64 ns;     /* of the fastest turn; for huge pages, of each one's fastest */
	u64 page_ns[BLOCKS_MAX];
};

struct series {
	const char *size;
	u64 page_bytes;
	char *page[BLOCKS_MAX];
	unsigned count;
	struct way way[WAYS_MAX];
	unsigned ways;
};

/* ---- what is measured ---- */

static struct clear_how how_of(const struct clear_mode *mode, const struct clear_insn *insn)
{
	return (struct clear_how){.mode = mode, .insn = {insn, insn, insn}, .threads = 1};
}

static void forget(struct way *way)
{
	way->ns = ~0ULL;
	for (unsigned i = 0; i < BLOCKS_MAX; i++)
		way->page_ns[i] = ~0ULL;
}

static void add_way(struct series *s, const char *mode, const char *insn, struct clear_how how, bool plain)
{
	s->way[s->ways++] = (struct way){.mode = mode, .insn = insn, .how = how, .plain = plain};
	forget(&s->way[s->ways - 1]);
}

/* Every mode with every instruction, the default with one thread and with all, the limit. */
static void add_ways(struct series *s)
{
	struct clear_how chosen = clear_how_selected();

	s->ways = 0;
	for (const struct clear_mode *mode = clear_modes; mode->name; mode++)
		for (const struct clear_insn *insn = clear_insns; insn->name; insn++)
			if (insn->supported() && !(s->page_bytes == PAGE_SIZE && mode->extent == PAGE_SIZE))
				add_way(s, mode->name, insn->name, how_of(mode, insn), false);
	if (s->page_bytes > CLEAR_EXTENT_MAX && chosen.threads > 1)
		add_way(s, chosen.mode->name, "all-cpus", chosen, false);
	chosen.threads = 1;
	add_way(s, chosen.mode->name, "default", chosen, false);
	for (const struct clear_insn *insn = clear_insns; insn->name; insn++)
		if (insn->name[0] == 'n' && insn->supported())
			add_way(s, "plain", insn->name, how_of(clear_modes, insn), true);
}

static void clear_one(const struct series *s, const struct way *way, unsigned i)
{
	if (way->plain || s->page_bytes < CLEAR_LARGE_FROM)
		way->how.insn[clear_class_of(s->page_bytes)]->clear(s->page[i], s->page_bytes);
	else
		clear_huge(&way->how, s->page[i], s->page_bytes, 0, NODE_NONE);
}

/* As their last user left them: written, and in the cache. */
static void use_pages(const struct series *s)
{
	for (unsigned i = 0; i < s->count; i++)
		for (u64 at = 0; at < s->page_bytes; at += 64)
			*(volatile u64 *)(s->page[i] + at) = at;
}

/* Small pages take too little time to be timed one by one. */
static void turn_small(const struct series *s, struct way *way)
{
	u64 start;

	use_pages(s);
	start = clock_ns();
	for (unsigned i = 0; i < s->count; i++)
		clear_one(s, way, i);
	way->ns = MIN(way->ns, MAX(clock_ns() - start, 1));
}

static void turn_huge(const struct series *s, struct way *way)
{
	way->ns = 0;
	for (unsigned i = 0; i < s->count; i++) {
		const u64 start = clock_ns();

		clear_one(s, way, i);
		way->page_ns[i] = MIN(way->page_ns[i], MAX(clock_ns() - start, 1));
		way->ns += way->page_ns[i];
	}
}

static void turn(const struct series *s, struct way *way)
{
	if (s->page_bytes < CLEAR_LARGE_FROM)
		turn_small(s, way);
	else
		turn_huge(s, way);
}

/* A turn for each way. False if Ctrl-C came in the middle. */
static bool measure_round(struct series *s)
{
	for (unsigned i = 0; i < s->ways; i++) {
		if (input_stop_asked())
			return false;
		turn(s, &s->way[i]);
	}
	return true;
}

/* False if it was stopped before each way had its turn. */
static bool measure(struct series *s)
{
	u64 start;

	if (!measure_round(s)) /* unmeasured: has the host back the memory */
		return false;
	for (unsigned i = 0; i < s->ways; i++)
		forget(&s->way[i]);
	start = clock_ns();
	if (!measure_round(s))
		return false;
	for (unsigned round = 1; round < ROUNDS_MAX && clock_ns() - start < BUDGET_NS; round++)
		if (!measure_round(s))
			break;
	return true;
}

/* ---- output ---- */

static u64 bytes_of(const struct series *s)
{
	return s->page_bytes * s->count;
}

/* GB/s in hundredths. */
static u64 rate(const struct series *s, const struct way *way)
{
	return way ? bytes_of(s) * 100 / way->ns : 0;
}

static const struct way *find_way(const struct series *s, const char *mode, const char *insn)
{
	for (unsigned i = 0; i < s->ways; i++)
		if ((!mode || s->way[i].mode == mode) && s->way[i].insn == insn)
			return &s->way[i];
	return NULL;
}

static void print_rate(const char *what, u64 hundredths)
{
	print("%s%5llu.%02llu", what, (unsigned long long)(hundredths / 100), (unsigned long long)(hundredths % 100));
}

static void print_row(const struct series *s, const struct clear_insn *insn)
{
	const u64 page = rate(s, find_way(s, clear_modes[0].name, insn->name));
	const u64 multi = rate(s, find_way(s, clear_modes[1].name, insn->name));
	const s64 change = page ? ((s64)multi - (s64)page) * 1000 / (s64)page : 0;

	print("  %-4s %-8s", s->size, insn->name);
	if (page)
		print_rate(" ", page);
	else
		print("         ");
	print_rate("  ", multi);
	if (page)
		print("  %c%lld.%lld%%", change < 0 ? '-' : '+', (long long)((change < 0 ? -change : change) / 10),
		      (long long)((change < 0 ? -change : change) % 10));
	print("\n");
}

/* The choice against the best that clears page by page. */
static void note_gain(const struct series *s, const struct way *chosen)
{
	const struct way *page = NULL;
	char name[16];

	for (unsigned i = 0; i < s->ways; i++)
		if (s->way[i].mode == clear_modes[0].name && (!page || s->way[i].ns < page->ns))
			page = &s->way[i];
	if (!page || !chosen)
		return;
	format(name, sizeof(name), "clear %s", s->size);
	page_gain(name, "as one extent %llu.%02llu GB/s, page by page at best %llu.%02llu",
		  (unsigned long long)(rate(s, chosen) / 100), (unsigned long long)(rate(s, chosen) % 100),
		  (unsigned long long)(rate(s, page) / 100), (unsigned long long)(rate(s, page) % 100));
}

/* The choice against the best single-CPU variant of the tables' multi column. */
static void print_choice(const struct series *s)
{
	const struct way *chosen = find_way(s, NULL, "default"), *all = find_way(s, NULL, "all-cpus"), *best = NULL;
	const struct way *limit = &s->way[s->ways - 1];

	for (unsigned i = 0; i < s->ways; i++)
		if (!s->way[i].plain && &s->way[i] != chosen && &s->way[i] != all && (!best || s->way[i].ns < best->ns))
			best = &s->way[i];
	note_gain(s, chosen);
	print_rate("       default ", rate(s, chosen));
	print(" = %llu%% of the best (%s %s)", (unsigned long long)(best->ns * 100 / chosen->ns), best->mode, best->insn);
	if (all)
		print_rate("; all CPUs ", rate(s, all));
	print_rate("; plain non-temporal fill ", rate(s, limit));
	print("\n\n");
}

/* One more turn, counted: "cycles:N,instructions:N", for the pages of the record together. */
static void count_events(const struct series *s, const struct way *way, char *text, size_t size)
{
	const char *names[PMU_EVENTS_MAX];
	const unsigned events = pmu_events(names);
	u64 values[PMU_EVENTS_MAX];
	size_t at = 0;

	format(text, size, "none");
	if (events == 0)
		return;
	pmu_start();
	for (unsigned i = 0; i < s->count; i++)
		clear_one(s, way, i);
	pmu_stop(values);
	for (unsigned i = 0; i < events; i++)
		at += (size_t)format(text + at, size - at, "%s%s:%llu", i ? "," : "", names[i],
				     (unsigned long long)values[i]);
}

static void record(const struct series *s)
{
	char pmu[128];

	for (unsigned i = 0; i < s->ways; i++) {
		const struct way *way = &s->way[i];
		const unsigned threads = find_way(s, NULL, "all-cpus") == way ? way->how.threads : 1;

		count_events(s, way, pmu, sizeof(pmu));
		print("BENCH clear mode=%s insn=%s size=%s hint=0 bytes=%llu ns=%llu pmu=%s threads=%u\n", way->mode,
		      way->insn, s->size, (unsigned long long)bytes_of(s), (unsigned long long)way->ns, pmu, threads);
	}
}

static void run_series(struct series *s)
{
	add_ways(s);
	if (!measure(s)) {
		s->ways = 0; /* nothing to record */
		return;
	}
	for (const struct clear_insn *insn = clear_insns; insn->name; insn++)
		if (insn->supported())
			print_row(s, insn);
	print_choice(s);
}

/* ---- buffers ---- */

/* As many blocks as the slowest instruction clears in TURN_NS, of those there are. */
static unsigned blocks_for_a_turn(struct series *s)
{
	u64 slowest = 1;

	for (const struct clear_insn *insn = clear_insns; insn->name; insn++) {
		const struct clear_how how = how_of(&clear_modes[1], insn);
		static struct way way;

		if (!insn->supported())
			continue;
		way = (struct way){.how = how, .plain = true};
		forget(&way);
		s->count = 1;
		turn(s, &way); /* the host backs it */
		turn(s, &way);
		slowest = MAX(slowest, way.ns);
	}
	return (unsigned)MAX(MIN(TURN_NS / slowest, BLOCKS_MAX), 2);
}

static void free_pages(char *const *blocks, unsigned count, struct page *giga)
{
	if (giga)
		page_free(giga);
	while (count > 0)
		page_free(pfn_to_page(virt_to_phys(blocks[--count]) >> PAGE_SHIFT));
}

static bool bench_clear(void)
{
	static struct series small, large, giant;
	struct page *giga = page_alloc(GIGA_ORDER, USE_MOVABLE, 0, NODE_NONE);
	unsigned blocks = 0;

	giant = (struct series){.ways = 0};
	large = (struct series){.size = "2M", .page_bytes = 1ULL << BLOCK_SHIFT};
	small = (struct series){.size = "4K", .page_bytes = PAGE_SIZE, .count = SMALL_PAGES};
	while (blocks < BLOCKS_MAX) {
		struct page *page = page_alloc(BLOCK_ORDER, USE_MOVABLE, 0, NODE_NONE);

		if (!page)
			break;
		large.page[blocks++] = page_address(page);
	}
	if (blocks < 2) {
		print("  # skipped: needs 4 MiB of free memory\n");
		verdict_count(0, 0, 1);
		free_pages(large.page, blocks, giga);
		return true;
	}
	for (unsigned i = 0; i < SMALL_PAGES; i++)
		small.page[i] = large.page[0] + i * PAGE_SIZE;
	print("Clearing, GB/s (Arora, \"mm/clear_huge_page: use multi-page clearing\", 2023-04)\n\n"
	      "  size insn        page    multi  change\n");
	run_series(&small);
	large.count = MIN(blocks_for_a_turn(&large), blocks);
	run_series(&large);
	if (giga) {
		giant = (struct series){.size = "1G", .page_bytes = GIB(1), .page = {page_address(giga)}, .count = 1};
		run_series(&giant);
	} else {
		print("  1G   left out: no free GiB in one piece\n\n");
	}
	record(&small);
	record(&large);
	record(&giant);
	free_pages(large.page, blocks, giga);
	return true;
}

BENCH(clear, "clear 4 KiB, 2 MiB and 1 GiB pages in both modes with every instruction (S2)", bench_clear);
