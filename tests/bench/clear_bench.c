/*
 * The S2 table: clearing pages one by one and in whole extents, with every instruction this CPU has (Arora,
 * "mm/clear_huge_page: use multi-page clearing", 2023-04).
 *
 *   4K   pages as the allocator's lists hand them out: a few, again and again, out of the cache
 *   2M   huge pages, touched at their start, as many as the slowest variant can do in TURN_NS
 *   1G   one page; by one CPU, and in slices by all
 *
 * Variants take turns for BUDGET_NS, and the fastest turn of each counts: what disturbs a machine only ever adds. The
 * default choice is a variant of its own in these turns. The limit beside them is a plain non-temporal fill, nothing
 * around it.
 */
#include <arch/clock.h>

#include "kernel/bench.h"
#include "kernel/percpu.h"
#include "kernel/printk.h"
#include "mm/clear.h"
#include "mm/mm.h"
#include "mm/page.h"

enum { ROUNDS_MAX = 50, BLOCKS_MAX = 128, SMALL_PAGES = 64, INSNS_MAX = 8, WAYS_MAX = 2 * INSNS_MAX + 3 };
#define TURN_NS (4 * NS_PER_MS)
#define BUDGET_NS (4 * NS_PER_S)

/* One row's column. */
struct way {
	const char *mode, *insn;
	struct clear_how how;
	bool plain; /* the limit: the instruction on the whole buffer, no order and no slices */
	u64 ns;     /* of the fastest turn */
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

static void add_way(struct series *s, const char *mode, const char *insn, struct clear_how how, bool plain)
{
	s->way[s->ways++] = (struct way){.mode = mode, .insn = insn, .how = how, .plain = plain, .ns = ~0ULL};
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

static u64 turn(const struct series *s, const struct way *way)
{
	const u64 start = clock_ns();

	for (unsigned i = 0; i < s->count; i++) {
		if (way->plain || s->page_bytes < CLEAR_LARGE_FROM)
			way->how.insn[clear_class_of(s->page_bytes)]->clear(s->page[i], s->page_bytes);
		else
			clear_huge(&way->how, s->page[i], s->page_bytes, 0, NODE_NONE);
	}
	return MAX(clock_ns() - start, 1);
}

static void measure(struct series *s)
{
	u64 start;

	for (unsigned i = 0; i < s->ways; i++)
		turn(s, &s->way[i]); /* unmeasured: has the host back the memory */
	start = clock_ns();
	for (unsigned round = 0; round < ROUNDS_MAX && (round == 0 || clock_ns() - start < BUDGET_NS); round++)
		for (unsigned i = 0; i < s->ways; i++)
			s->way[i].ns = MIN(s->way[i].ns, turn(s, &s->way[i]));
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

/* The choice against the best single-CPU variant of the tables' multi column. */
static void print_choice(const struct series *s)
{
	const struct way *chosen = find_way(s, NULL, "default"), *all = find_way(s, NULL, "all-cpus"), *best = NULL;
	const struct way *limit = &s->way[s->ways - 1];

	for (unsigned i = 0; i < s->ways; i++)
		if (!s->way[i].plain && &s->way[i] != chosen && &s->way[i] != all && (!best || s->way[i].ns < best->ns))
			best = &s->way[i];
	print_rate("       default ", rate(s, chosen));
	print(" = %llu%% of the best (%s %s)", (unsigned long long)(best->ns * 100 / chosen->ns), best->mode, best->insn);
	if (all)
		print_rate("; all CPUs ", rate(s, all));
	print_rate("; plain non-temporal fill ", rate(s, limit));
	print("\n\n");
}

static void record(const struct series *s)
{
	for (unsigned i = 0; i < s->ways; i++) {
		const struct way *way = &s->way[i];
		const unsigned threads = find_way(s, NULL, "all-cpus") == way ? way->how.threads : 1;

		print("BENCH clear mode=%s insn=%s size=%s hint=0 bytes=%llu ns=%llu pmu=none threads=%u\n", way->mode,
		      way->insn, s->size, (unsigned long long)bytes_of(s), (unsigned long long)way->ns, threads);
	}
}

static void run_series(struct series *s)
{
	add_ways(s);
	measure(s);
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
		const struct way way = {.how = how, .plain = true};

		if (!insn->supported())
			continue;
		s->count = 1;
		turn(s, &way); /* the host backs it */
		slowest = MAX(slowest, turn(s, &way));
	}
	return (unsigned)MAX(MIN(TURN_NS / slowest, BLOCKS_MAX), 2);
}

static bool bench_clear(void)
{
	static struct series small, large, giant;
	struct page *giga = page_alloc(GIGA_ORDER, USE_MOVABLE, 0, NODE_NONE);
	unsigned blocks = 0;

	large = (struct series){.size = "2M", .page_bytes = 1ULL << BLOCK_SHIFT};
	small = (struct series){.size = "4K", .page_bytes = PAGE_SIZE, .count = SMALL_PAGES};
	while (blocks < BLOCKS_MAX) {
		struct page *page = page_alloc(BLOCK_ORDER, USE_MOVABLE, 0, NODE_NONE);

		if (!page)
			break;
		large.page[blocks++] = page_address(page);
	}
	if (blocks < 2)
		return false;
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
		page_free(giga);
	} else {
		print("  1G   left out: no free GiB in one piece\n\n");
	}
	while (blocks > 0)
		page_free(pfn_to_page(virt_to_phys(large.page[--blocks]) >> PAGE_SHIFT));
	record(&small);
	record(&large);
	if (giga)
		record(&giant);
	return true;
}

BENCH(clear, "clear 4 KiB, 2 MiB and 1 GiB pages in both modes with every instruction (S2)", bench_clear);
