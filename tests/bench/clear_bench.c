/*
 * The table of the clearing series (Arora, "mm/clear_huge_page: use multi-page
 * clearing", 2023-04). It compares the same instruction in steps of 4 KiB and in whole extents, for
 * every instruction that this CPU has, rep stosb first.
 *
 *   4K   pages in the order of the allocator's lists, the last one freed first, so out of the cache
 *   2M   huge pages, each cleared as for a touch at its start: 512 MiB, more than caches hold, or
 *        as much as the slowest variant can clear in TURN_NS
 *   1G   one page, in extents of 32 MiB and as one instruction (the series' point about Milan); by
 *        all CPUs, in extents; and by all CPUs with one instruction each over its part (stream),
 *        the fastest of which is the bandwidth
 *
 * Then the extent alone is varied (`by extent`), with one row for each instruction. The default is
 * a way of its own beside the others. It changes extent and instruction together, so it is compared
 * with other ways only as a share of the best.
 *
 * Ways take turns for ms=. The fastest time of each page counts, because disturbances only
 * ever add time. Hosted, turns and 1 GiB pages are timed by the CPU time of this process
 * (clock_cpu_ns()). The limit beside them is a plain non-temporal fill with no other code around
 * it. `cpu_ns` of all CPUs is their CPU time together, the wait for the last one included.
 *
 * gate=PERCENT: the benchmark fails if the default takes that much longer than the best way
 * of one CPU. It must do so in two measurements one after the other, each both by its fastest turns
 * and by the median of pairs of turns (turns.h).
 */
#include "tests/bench/counters.h"
#include "tests/bench/insns.h"
#include "tests/bench/measure.h"
#include "tests/bench/turns.h"
#include "tests/bench/work.h"
#include "tests/kernel/scratch.h"

enum {
	ROUNDS_MAX = 2000,
	ROUNDS_JUDGED = 5,
	BLOCKS_MAX = 256,
	SMALL_PAGES = 64,
	WAYS_MAX = 4 * INSNS_MAX + 3
};
#define TURN_NS (100 * NS_PER_MS)
/* limit of a measurement, in times its budget, where other processes use the CPU too */
#define SLOWER_MAX 4

static u64 gate;
OPTION_U64(bench.clear.gate, gate, 0, 1000,
	   "percent that the default way of clearing may take longer than the best; 0: any");

static u64 budget_ms = 3000;
OPTION_U64(bench.clear.ms, budget_ms, 1, 600000,
	   "CPU time for each size; a third of it for each instruction by "
	   "extent");

/* One way of clearing, which is one figure of a row. */
struct way {
	const char *mode, *insn;
	struct clear_how how;
	/* the limit: the instruction on the whole buffer, with no steps and no slices */
	bool plain;
	struct turns turns;
	u64 ns;     /* time of the fastest turn; for 2 MiB pages, the sum of each page's fastest */
	u64 cpu_ns; /* several threads: CPU time of all together in the fastest turn; else 0 */
	u64 page_ns[BLOCKS_MAX];
	struct leg_work work;
};

struct series {
	const char *size;
	u64 page_bytes;
	char *page[BLOCKS_MAX];
	unsigned count;
	u64 touched;        /* bytes of these pages that were written before */
	struct work before; /* when the pages were allocated */
	struct way way[WAYS_MAX];
	unsigned ways;
};

/* ---- measuring ---- */

static u64 bytes_of(const struct series *s)
{
	return s->page_bytes * s->count;
}

static struct clear_how how_of(const struct clear_mode *mode, const struct clear_insn *insn,
			       u64 extent)
{
	return (struct clear_how){
		.mode = mode, .insn = {insn, insn, insn}, .extent = extent, .threads = 1};
}

static void forget(struct way *way)
{
	way->work = (struct leg_work){.warm = false};
	way->turns.count = 0;
	way->ns = ~0ULL;
	way->cpu_ns = 0;
	for (unsigned i = 0; i < BLOCKS_MAX; i++)
		way->page_ns[i] = ~0ULL;
}

static struct way *add_way(struct series *s, const char *mode, const char *insn,
			   struct clear_how how)
{
	struct way *way = &s->way[s->ways++];

	way->mode = mode;
	way->insn = insn;
	way->how = how;
	way->plain = false;
	forget(way);
	return way;
}

/* One instruction for each CPU, over its part of the page. */
static void add_stream(struct series *s, const struct clear_insn *insn, unsigned threads)
{
	struct clear_how how =
		how_of(&clear_modes[1], insn, ALIGN_UP(s->page_bytes / threads, (u64)CLEAR_EXTENT));

	how.threads = threads;
	add_way(s, "stream", insn->name, how);
}

/*
 * Add each instruction in steps, in extents and whole; the default with all threads, with what
 * memory can do beside it, and with one; and the limit.
 */
static void add_ways(struct series *s)
{
	const struct clear_mode *page = &clear_modes[0], *multi = &clear_modes[1];
	struct clear_how chosen = clear_how_selected();
	const struct clear_insn *insn;

	s->ways = 0;
	for (unsigned n = 0; (insn = insn_in_turn(n)); n++) {
		if (s->page_bytes > PAGE_SIZE)
			add_way(s, page->name, insn->name, how_of(page, insn, PAGE_SIZE));
		add_way(s, multi->name, insn->name, how_of(multi, insn, CLEAR_EXTENT));
		if (s->page_bytes > CLEAR_EXTENT)
			add_way(s, multi->name, insn->name, how_of(multi, insn, CLEAR_WHOLE));
	}
	if (s->page_bytes > CLEAR_EXTENT && chosen.threads > 1) {
		add_way(s, chosen.mode->name, "all-cpus", chosen);
		for (unsigned n = 0; (insn = insn_in_turn(n)); n++)
			add_stream(s, insn, chosen.threads);
	}
	chosen.threads = 1;
	add_way(s, chosen.mode->name, "default", chosen);
	for (insn = clear_insns; insn->name; insn++)
		if (insn->name[0] == 'n' && clear_insn_supported(insn))
			add_way(s, "plain", insn->name, how_of(page, insn, CLEAR_WHOLE))->plain =
				true;
}

static void clear_one(const struct series *s, const struct way *way, unsigned i)
{
	if (way->plain || s->page_bytes < CLEAR_LARGE_FROM)
		way->how.insn[clear_class_of(s->page_bytes)]->clear(s->page[i], s->page_bytes);
	else
		clear_huge(&way->how, s->page[i], s->page_bytes, 0, NODE_NONE);
}

/* Leave the pages as their last user would: written, and in the cache. */
static void use_pages(const struct series *s)
{
	for (unsigned i = 0; i < s->count; i++)
		for (u64 at = 0; at < s->page_bytes; at += 64)
			*(volatile u64 *)(s->page[i] + at) = at;
}

/* Small pages take too little time to be timed one by one, so the whole turn is timed. */
static void turn_small(const struct series *s, struct way *way)
{
	u64 start;

	use_pages(s);
	start = clock_ns();
	for (unsigned i = 0; i < s->count; i++)
		clear_one(s, way, i);
	turns_add(&way->turns, clock_ns() - start);
	way->ns = way->turns.fastest;
}

static void turn_huge(const struct series *s, struct way *way)
{
	const u64 all = clock_cpu_ns();

	way->ns = 0;
	for (unsigned i = 0; i < s->count; i++) {
		const u64 start = clock_ns();

		clear_one(s, way, i);
		way->page_ns[i] = MIN(way->page_ns[i], MAX(clock_ns() - start, 1));
		way->ns += way->page_ns[i];
	}
	turns_add(&way->turns, clock_cpu_ns() - all);
}

/* The turn of several threads: the instruction, and the CPU time that helpers spent in it. */
static struct {
	const struct clear_insn *insn;
	cpu_t caller;
	u64 helpers_ns; /* atomic */
} shared;

static void clear_timed(void *addr, size_t bytes)
{
	const u64 start = clock_cpu_ns();

	shared.insn->clear(addr, bytes);
	if (cpu_id() != shared.caller)
		atomic_add_relaxed(&shared.helpers_ns, clock_cpu_ns() - start);
}

/* The clock is used, because the helpers' time is not in this CPU's. */
static void turn_shared(const struct series *s, struct way *way)
{
	static const struct clear_insn timed = {.name = "timed", .clear = clear_timed};
	const u64 start = clock_ns(), cpu_start = clock_cpu_ns();
	struct clear_how how = way->how;
	u64 ns;

	shared.insn = how.insn[CLEAR_GIANT];
	shared.caller = cpu_id();
	shared.helpers_ns = 0;
	how.insn[CLEAR_GIANT] = &timed;
	clear_huge(&how, s->page[0], s->page_bytes, 0, NODE_NONE);
	ns = clock_ns() - start;
	turns_add(&way->turns, ns);
	if (ns < way->ns) {
		way->ns = ns;
		way->cpu_ns = clock_cpu_ns() - cpu_start + shared.helpers_ns;
	}
}

static void turn_giant(const struct series *s, struct way *way)
{
	const u64 start = clock_cpu_ns();

	clear_one(s, way, 0);
	turns_add(&way->turns, clock_cpu_ns() - start);
	way->ns = way->turns.fastest;
}

static void turn(struct series *s, struct way *way)
{
	leg_work_begin(&way->work);
	way->work.before = s->before;
	leg_work_warm(&way->work, &s->touched, bytes_of(s));
	if (s->page_bytes < CLEAR_LARGE_FROM)
		turn_small(s, way);
	else if (way->how.threads > 1)
		turn_shared(s, way);
	else if (s->page_bytes > CLEAR_EXTENT)
		turn_giant(s, way);
	else
		turn_huge(s, way);
	leg_work_end(&way->work);
}

/* One turn for each way, with another way first in each round. False if Ctrl-C interrupted it. */
static bool measure_round(struct series *s, unsigned round)
{
	for (unsigned i = 0; i < s->ways; i++) {
		if (input_stop_asked())
			return false;
		turn(s, &s->way[(i + round) % s->ways]);
	}
	return true;
}

/* Clear once in the fastest way, unmeasured, so that the host backs the memory. */
static void touch_pages(struct series *s)
{
	for (unsigned i = 0; i < s->count; i++)
		clear_insn_selected(CLEAR_LARGE)->clear(s->page[i], s->page_bytes);
	s->touched = bytes_of(s);
}

/* False if it was stopped before each way had its turn. */
static bool measure(struct series *s, u64 budget)
{
	u64 start, cpu_start;

	touch_pages(s);
	for (unsigned i = 0; i < s->ways; i++)
		forget(&s->way[i]);
	start = clock_ns();
	cpu_start = clock_cpu_ns();
	if (!measure_round(s, 0))
		return false;
	for (unsigned round = 1; round < (gate ? ROUNDS_JUDGED : 1) ||
				 (round < ROUNDS_MAX && clock_cpu_ns() - cpu_start < budget &&
				  clock_ns() - start < SLOWER_MAX * budget);
	     round++)
		if (!measure_round(s, round))
			break;
	return true;
}

/* ---- output ---- */

/* GB/s in hundredths. */
static u64 rate(const struct series *s, const struct way *way)
{
	return way ? bytes_of(s) * 100 / MAX(way->ns, 1) : 0;
}

static const struct way *find_way(const struct series *s, const char *mode, const char *insn,
				  u64 extent)
{
	for (unsigned i = 0; i < s->ways; i++)
		if ((!mode || s->way[i].mode == mode) && strcmp(s->way[i].insn, insn) == 0 &&
		    (!extent || s->way[i].how.extent == extent))
			return &s->way[i];
	return NULL;
}

/* Print a rate and its change against steps of 4 KiB; blanks if there is no rate. */
static void print_column(u64 page, u64 rate)
{
	const s64 change = page ? ((s64)rate - (s64)page) * 1000 / (s64)page : 0;
	char text[16] = "";

	if (rate == 0)
		return;
	if (page)
		format(text, sizeof(text), "%c%llu.%llu%%", change < 0 ? '-' : '+',
		       ((change < 0 ? -change : change) / 10),
		       ((change < 0 ? -change : change) % 10));
	print("  %5llu.%02llu %8s", HUNDREDTHS(rate), text);
}

static void print_row(const struct series *s, const struct clear_insn *insn)
{
	const u64 page = rate(s, find_way(s, clear_modes[0].name, insn->name, 0));

	print("  %-4s %-8s", s->size, insn->name);
	if (page)
		print("   %5llu.%02llu", HUNDREDTHS(page));
	else
		print("           ");
	print_column(page, rate(s, find_way(s, clear_modes[1].name, insn->name, CLEAR_EXTENT)));
	print_column(page, rate(s, find_way(s, clear_modes[1].name, insn->name, CLEAR_WHOLE)));
	print("\n");
}

/* Is this one of the ways with one CPU, other than the default and the limit? */
static bool is_rival(const struct way *way)
{
	return !way->plain && way->how.threads == 1 && strcmp(way->insn, "default") != 0;
}

/* The one-CPU way that the default is furthest behind, or NULL if it is behind none. */
static const struct way *best_rival(const struct series *s, const struct way *chosen)
{
	const struct way *best = NULL;

	for (unsigned i = 0; i < s->ways; i++)
		if (is_rival(&s->way[i]) &&
		    turns_behind(&chosen->turns, &s->way[i].turns) >
			    (best ? turns_behind(&chosen->turns, &best->turns) : 0))
			best = &s->way[i];
	return best;
}

/* Print the rate of all CPUs, the bandwidth in the same turns, and the CPU time. */
static void print_shared(const struct series *s, const struct way *all)
{
	const struct way *best = all;

	for (unsigned i = 0; i < s->ways; i++)
		if (s->way[i].how.threads > 1 && s->way[i].ns < best->ns)
			best = &s->way[i];
	print("; all CPUs %5llu.%02llu of %5llu.%02llu (%s), %llu ms of CPU time",
	      HUNDREDTHS(rate(s, all)), HUNDREDTHS(rate(s, best)), best->insn,
	      all->cpu_ns / NS_PER_MS);
}

static void print_choice(const struct series *s)
{
	const struct way *chosen = find_way(s, NULL, "default", 0),
			 *all = find_way(s, NULL, "all-cpus", 0);
	const struct way *best = best_rival(s, chosen), *limit = &s->way[s->ways - 1];
	const u64 behind = best ? turns_behind(&chosen->turns, &best->turns) : 0;
	char extent[16];

	print("       default %5llu.%02llu", HUNDREDTHS(rate(s, chosen)));
	if (best) {
		extent_name(best->how.extent, extent, sizeof(extent));
		print(" (%llu.%llu%% behind %s, %s, %s)", behind / 10, behind % 10, best->insn,
		      best->mode, extent);
	} else {
		print(" (none is faster)");
	}
	if (all)
		print_shared(s, all);
	print("; plain non-temporal fill %5llu.%02llu\n", HUNDREDTHS(rate(s, limit)));
}

/* Further turns, counted and not timed; the counts are for all pages of the record together. */
static void count_events(const struct series *s, const struct way *way, char *text, size_t size)
{
	struct counters counters = {.counted = false};

	for (unsigned turn = 0; turn < pmu_turns(); turn++) {
		pmu_start(turn);
		for (unsigned i = 0; i < s->count; i++)
			clear_one(s, way, i);
		counters_stop(&counters, turn);
	}
	counters_text(&counters, text, size);
}

static void record(const struct series *s)
{
	char pmu[COUNTERS_TEXT], extent[16];

	for (unsigned i = 0; i < s->ways; i++) {
		const struct way *way = &s->way[i];

		count_events(s, way, pmu, sizeof(pmu));
		extent_name(way->how.mode->by_page && !way->plain ? PAGE_SIZE : way->how.extent,
			    extent, sizeof(extent));
		print("BENCH clear mode=%s insn=%s size=%s extent=%s hint=0 bytes=%llu threads=%u "
		      "ns=%llu median_ns=%llu cpu_ns=%llu turns=%llu pmu=%s",
		      way->mode, way->insn, s->size, extent, bytes_of(s), way->how.threads, way->ns,
		      turns_median(&way->turns), way->cpu_ns, way->turns.count, pmu);
		leg_work_print(&way->work);
		print("\n");
	}
}

/* ---- the gate ---- */

/*
 * False only if two measurements agree that a way is faster than the default by more than the gate.
 */
static bool passes_gate(struct series *s)
{
	const struct way *chosen = find_way(s, NULL, "default", 0), *best;
	u64 behind;

	for (unsigned tries = 0; tries < 2; tries++) {
		best = best_rival(s, chosen);
		behind = best ? turns_behind(&chosen->turns, &best->turns) : 0;
		if (gate == 0 || behind <= gate * 10)
			return true;
		if (tries == 0 && !measure(s, budget_ms * NS_PER_MS))
			return true; /* stopped */
	}
	print("       # FAILED: clearing %s by default takes at least %llu.%llu%% longer than by "
	      "%s, gate=%llu\n",
	      s->size, behind / 10, behind % 10, best->insn, gate);
	return false;
}

/* False if the default is behind. True otherwise, and if the series was stopped. */
static bool run_series(struct series *s)
{
	const struct clear_insn *insn;
	bool ok;

	add_ways(s);
	if (!measure(s, budget_ms * NS_PER_MS)) {
		s->ways = 0; /* nothing to record */
		return true;
	}
	ok = passes_gate(s);
	for (unsigned n = 0; (insn = insn_in_turn(n)); n++)
		print_row(s, insn);
	print_choice(s);
	return ok;
}

/* ---- by extent ---- */

static const u64 extents_2m[] = {KIB(4), KIB(32), KIB(256), CLEAR_WHOLE, 0};
static const u64 extents_1g[] = {KIB(4), KIB(64), MIB(2), MIB(32), MIB(256), CLEAR_WHOLE, 0};

static void record_extent(const struct series *s, const struct way *way)
{
	char extent[16];

	extent_name(way->how.extent, extent, sizeof(extent));
	print("BENCH clear_extent insn=%s size=%s extent=%s bytes=%llu ns=%llu median_ns=%llu "
	      "turns=%llu",
	      way->insn, s->size, extent, bytes_of(s), way->ns, turns_median(&way->turns),
	      way->turns.count);
	leg_work_print(&way->work);
	print("\n");
}

static void run_extents(struct series *s, const struct clear_insn *insn, const u64 *extents)
{
	char name[16];

	s->ways = 0;
	for (; *extents; extents++)
		add_way(s, clear_modes[1].name, insn->name,
			how_of(&clear_modes[1], insn, *extents));
	if (!measure(s, budget_ms * NS_PER_MS / 3))
		return;
	print("  %-4s %-8s by extent", s->size, insn->name);
	for (unsigned i = 0; i < s->ways; i++) {
		extent_name(s->way[i].how.extent, name, sizeof(name));
		print("  %s%5llu.%02llu", name, HUNDREDTHS(rate(s, &s->way[i])));
	}
	print("\n");
	for (unsigned i = 0; i < s->ways; i++)
		record_extent(s, &s->way[i]);
}

/*
 * Measure by extent. The first instruction always has its row; the others have theirs until the
 * rows together have taken three budgets.
 */
static void run_ladder(struct series *s, const u64 *extents)
{
	const u64 start = clock_cpu_ns();
	const struct clear_insn *insn;

	for (unsigned n = 0; (insn = insn_in_turn(n)) && !input_stop_asked(); n++)
		if (n == 0 || clock_cpu_ns() - start < 3 * budget_ms * NS_PER_MS)
			run_extents(s, insn, extents);
		else
			print("  %-4s %-8s by extent: left out, the others took too long\n",
			      s->size, insn->name);
	s->ways = 0;
}

/* ---- buffers ---- */

/* Number of blocks that the slowest instruction clears in TURN_NS, at least 2. */
static unsigned blocks_for_a_turn(struct series *s)
{
	const struct clear_insn *insn;
	u64 slowest = 1;

	s->ways = 0;
	for (unsigned n = 0; (insn = insn_in_turn(n)); n++) {
		struct way *way =
			add_way(s, "plain", insn->name, how_of(&clear_modes[1], insn, CLEAR_WHOLE));

		s->count = 1;
		turn(s, way); /* unmeasured, so that the host backs the memory */
		turn(s, way);
		slowest = MAX(slowest, way->ns);
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

static bool run_all(struct series *small, struct series *large, struct series *giant)
{
	bool ok;

	print("Clearing, GB/s: the same instruction in steps of 4 KiB and in extents\n"
	      "(Arora, \"mm/clear_huge_page: use multi-page clearing\", 2023-04)\n\n"
	      "  size insn     4K steps   extents   change     whole   change\n");
	ok = run_series(small);
	ok &= run_series(large);
	if (giant->count)
		ok &= run_series(giant);
	else
		print("  1G   left out: no free GiB in one piece\n");
	print("\n");
	record(small);
	record(large);
	record(giant);
	print("\n");
	if (input_stop_asked())
		return ok;
	run_ladder(large, extents_2m);
	if (giant->count)
		run_ladder(giant, extents_1g);
	print("  whole: one instruction; with interrupts on it is interrupted between two stores "
	      "(mm/clear/clear.h)\n\n");
	return ok;
}

static bool bench_clear(void)
{
	struct series *small = SCRATCH(struct series, 3), *large = small + 1, *giant = small + 2;
	struct leg_work work = {0};
	struct page *giga;
	unsigned blocks = 0;
	bool ok;

	leg_work_prepare(&work);
	giga = page_alloc(GIGA_ORDER, USE_MOVABLE, 0, NODE_NONE);
	*giant = (struct series){.size = "1G", .page_bytes = GIB(1)};
	*large = (struct series){.size = "2M", .page_bytes = 1ULL << BLOCK_SHIFT};
	*small = (struct series){.size = "4K", .page_bytes = PAGE_SIZE, .count = SMALL_PAGES};
	while (blocks < BLOCKS_MAX) {
		struct page *page = page_alloc(BLOCK_ORDER, USE_MOVABLE, 0, NODE_NONE);

		if (!page)
			break;
		large->page[blocks++] = page_address(page);
	}
	if (blocks < 2) {
		print("  # skipped: needs 4 MiB of free memory\n");
		verdict_count(0, 0, 1);
		free_pages(large->page, blocks, giga);
		return true;
	}
	for (unsigned i = 0; i < SMALL_PAGES; i++)
		small->page[i] = large->page[0] + i * PAGE_SIZE;
	leg_work_begin(&work);
	small->before = large->before = giant->before = work.before;
	large->count = MIN(blocks_for_a_turn(large), blocks);
	if (giga) {
		giant->page[0] = page_address(giga);
		giant->count = 1;
	}
	ok = run_all(small, large, giant);
	free_pages(large->page, blocks, giga);
	return ok;
}

BENCH(clear,
      "clear 4 KiB, 2 MiB and 1 GiB pages in steps and in extents with every instruction "
      "(clearing series)",
      bench_clear);
