/*
 * Demand faults over a large region of huge pages, the test of the clearing series
 * (Arora, "mm/clear_huge_page: use multi-page clearing", 2023-04). There it is mmap(MAP_HUGETLB) of
 * 64 GiB, touched page by page by one task (here bytes=64G). It runs with 1, 2, 4 ... all
 * CPUs.
 *
 *   pieces   4K: steps of 4 KiB, as Linux before the series; extents: of 32 MiB at most; whole: a 1
 *            GiB page as one instruction
 *   change   against 4K with the same instruction, by medians; rep stosb comes first, then each
 *            other instruction (one CPU)
 *   default  the machine's own choice, with all the CPUs of the row for a 1 GiB page; not compared
 *            with anything
 *   besides  cost of a fault besides clearing: the first run's time less that of clearing as many
 *            pages of the pool, alone; with one CPU and -icount shift=0 a nanosecond is an
 *            instruction: `make bench WHAT=icount`
 *
 * Ways take turns, runs= times, with another one first each time. The median counts, and the
 * lowest and the highest are shown. With one CPU the time is that CPU's own, as the series'
 * task-clock is (clock_cpu_ns(); in a kernel that is the clock). With several CPUs it is the
 * clock's.
 *
 * The pool is grown before the clock starts, as hugetlb's is, and touched once before all runs so
 * that the host has backed it. Each way then brings one page that does not count, so that an
 * emulator has translated the code; a pool of one page is too slow for that. A leg fails if it does
 * not fault in each page exactly once, or needs more than one round to unmap them all.
 */
#include <arch/cpu.h>

#include "mm/hugetlb/pool.h"
#include "tests/bench/counters.h"
#include "tests/bench/insns.h"
#include "tests/bench/measure.h"
#include "tests/bench/work.h"
#include "tests/kernel/rounds.h"
#include "tests/kernel/scratch.h"

enum { RUNS_MAX = 7, RUNS_LEAST = 3, WAYS_MAX = 3 * INSNS_MAX + 1 };
enum { DOUBLINGS = 12, CPUS_MOST = 1 << DOUBLINGS }; /* more CPUs take no part */
/* 2M and 1G with one CPU; with more, rep stosb in two or three pieces, and the default */
enum { LEGS_MAX = RUNS_MAX * (2 * INSNS_MAX + 1 + WAYS_MAX + DOUBLINGS * (3 + 4)) };
/* limits for the runs of one size and number of CPUs beyond the least: this CPU's own time ... */
#define BUDGET_NS (10 * NS_PER_S)
#define LIMIT_NS  (40 * NS_PER_S) /* ... and by the clock */

static u64 fault_bytes = GIB(1), fault_runs;
static unsigned fault_size;
OPTION_U64(bench.fault.bytes, fault_bytes, MIB(2), TIB(16),
	   "region, as far as it fits (64G in the original)");
OPTION_U64(bench.fault.runs, fault_runs, 0, RUNS_MAX,
	   "times each way is measured, in turns; 0: three to seven, by time");
OPTION_CHOICE(bench.fault.size, fault_size, "all|2M|1G", "pages that are touched");

/* The content of one record. */
struct leg {
	const char *mode, *insn;
	u64 page, pages, extent;
	unsigned cpus, run, turn;
	u64 faults, ns, clear_ns, besides_ns, unmap_ns, unmap_rounds;
	char pmu[COUNTERS_TEXT]; /* of further runs; in the record of the first one */
	struct leg_work work;
};

/* One way of clearing, for one size and number of CPUs. */
struct way {
	const char *insn, *pieces;
	struct clear_how how;
	u64 ns[RUNS_MAX];
	unsigned runs;
	struct leg *first; /* of its runs */
	struct counters counters;
};

static struct leg *legs;
static unsigned leg_count;

static u64 touched_bytes; /* of the pool, before the leg */

static struct pool *pool_for(u64 page)
{
	return page == GIB(1) ? &pool_1g : &pool_2m;
}

/* ---- the timed work ---- */

struct region {
	char *addr; /* the mapping, or NULL if the pages themselves are cleared */
	struct page **page;
	u64 bytes; /* of a page */
	struct clear_how how;
};

static void touch(u64 first, u64 last, void *arg)
{
	const struct region *r = arg;

	for (u64 i = first; i < last; i++)
		*(volatile char *)(r->addr + i * r->bytes) = 1;
}

static void clear_only(u64 first, u64 last, void *arg)
{
	const struct region *r = arg;

	for (u64 i = first; i < last; i++)
		clear_huge(&r->how, page_address(r->page[i]), r->bytes, 0, NODE_NONE);
}

static u64 timed(void (*fn)(u64, u64, void *), struct region *r, u64 pages, unsigned cpus)
{
	u64 (*const clock)(void) = cpus == 1 ? clock_cpu_ns : clock_ns;
	const u64 start = clock();

	do_by(cpus, fn, r, pages);
	return MAX(clock() - start, 1);
}

/* Time to clear as many pages of the pool and nothing else; 0 if none is free. */
static u64 time_clear(const struct leg *leg, const struct clear_how *how)
{
	static struct page *pages[2048];
	struct region r = {.page = pages, .bytes = leg->page, .how = *how};
	u64 count = 0, ns = 0;

	while (count < MIN(leg->pages, ARRAY_LEN(pages)) &&
	       (pages[count] = pool_page_take(pool_for(leg->page), NODE_NONE, POOL_ANY)))
		count++;
	if (count > 0)
		ns = timed(clear_only, &r, count, leg->cpus) * leg->pages / count;
	while (count > 0)
		pool_page_give(pool_for(leg->page), pages[--count]);
	return ns;
}

static u64 faults_so_far(u64 page)
{
	struct huge_usage usage;

	huge_usage(&usage);
	return usage.faults[page == GIB(1) ? 2 : 1];
}

/*
 * Map, touch every page, unmap. If `counters` is not NULL, turn `turn` of it counts the touching.
 */
static bool touch_region(struct leg *leg, const struct clear_how *how, struct counters *counters,
			 unsigned turn)
{
	struct region r = {.bytes = leg->page};
	u64 start;

	leg_work_prepare(&leg->work);
	r.addr = huge_map(leg->pages * leg->page, leg->page, HUGE_RESERVE);
	if (!r.addr)
		return false;
	leg_work_warm(&leg->work, &touched_bytes, leg->pages * leg->page);
	clear_how_force(how);
	leg->faults = faults_so_far(leg->page);
	leg_work_begin(&leg->work);
	if (counters)
		pmu_start(turn);
	leg->ns = timed(touch, &r, leg->pages, leg->cpus);
	if (counters)
		counters_stop(counters, turn);
	leg_work_end(&leg->work);
	leg->faults = faults_so_far(leg->page) - leg->faults;
	clear_how_force(NULL);

	leg->unmap_rounds = rounds_so_far();
	start = clock_ns();
	huge_unmap(r.addr);
	leg->unmap_ns = clock_ns() - start;
	leg->unmap_rounds = rounds_so_far() - leg->unmap_rounds;
	return leg->faults == leg->pages && leg->unmap_rounds == 1;
}

/* ---- the runs ---- */

static u64 besides(const struct leg *leg)
{
	return leg->clear_ns && leg->ns > leg->clear_ns
		       ? (leg->ns - leg->clear_ns) * leg->cpus / leg->pages
		       : 0;
}

static bool run_leg(struct way *way, u64 page, u64 pages, unsigned cpus)
{
	struct leg *leg = &legs[leg_count];
	bool ok = true;

	*leg = (struct leg){.mode = way->how.mode->name,
			    .insn = way->insn,
			    .page = page,
			    .pages = pages,
			    .cpus = cpus};
	leg->extent = way->how.mode->by_page ? PAGE_SIZE : way->how.extent;
	leg->run = way->runs + 1;
	leg->turn = leg_count++;
	if (way->runs == 0)
		leg->clear_ns = time_clear(leg, &way->how);
	ok = touch_region(leg, &way->how, NULL, 0);
	if (!ok)
		pr_err("fault: %llu pages, %llu faults, %llu rounds to unmap", pages, leg->faults,
		       leg->unmap_rounds);
	leg->besides_ns = besides(leg);
	if (way->runs == 0)
		way->first = leg;
	way->ns[way->runs++] = leg->ns;
	return ok;
}

/* Counted runs are not timed, because starting and reading counters takes time. */
static bool run_counted(struct way *way, u64 page, u64 pages)
{
	struct leg leg = {.page = page, .pages = pages, .cpus = 1};

	for (unsigned turn = 0; turn < pmu_turns(); turn++)
		if (!touch_region(&leg, &way->how, &way->counters, turn))
			return false;
	counters_text(&way->counters, way->first->pmu, sizeof(way->first->pmu));
	return true;
}

/* ---- ways ---- */

struct rows {
	struct way way[WAYS_MAX];
	unsigned ways;
};

static void add_way(struct rows *rows, const char *insn, const char *pieces, struct clear_how how)
{
	struct way *way = &rows->way[rows->ways++];

	way->insn = insn;
	way->pieces = pieces;
	way->how = how;
	way->runs = 0;
	way->counters.counted = false;
}

static void add_insn(struct rows *rows, const struct clear_insn *insn, u64 page)
{
	struct clear_how how = {.mode = &clear_modes[0], .insn = {insn, insn, insn}, .threads = 1};

	add_way(rows, insn->name, "4K", how);
	how.mode = &clear_modes[1];
	how.extent = CLEAR_EXTENT;
	add_way(rows, insn->name, "extents", how);
	how.extent = CLEAR_WHOLE;
	if (page > CLEAR_EXTENT)
		add_way(rows, insn->name, "whole", how);
}

/* Add every instruction with one CPU, and only the first (rep stosb) with more. */
static void add_ways(struct rows *rows, u64 page, unsigned cpus)
{
	struct clear_how chosen = clear_how_selected();
	const struct clear_insn *insn;

	rows->ways = 0;
	for (unsigned n = 0; (insn = insn_in_turn(n)) && (n == 0 || cpus == 1); n++)
		add_insn(rows, insn, page);
	chosen.threads = chosen.mode->parallel ? cpus : 1;
	add_way(rows, "default", chosen.mode->by_page ? "4K" : "extents", chosen);
}

/* ---- output ---- */

static u64 rate(u64 bytes, u64 ns)
{
	return bytes * 1000 / MAX(ns, 1);
}

static u64 median(const struct way *way)
{
	u64 ns[RUNS_MAX];

	for (unsigned i = 0; i < way->runs; i++)
		ns[i] = way->ns[i];
	return median_u64(ns, way->runs);
}

/* The way with the same instruction in steps of 4 KiB. */
static const struct way *before(const struct rows *rows, const struct way *after)
{
	for (unsigned i = 0; i < rows->ways; i++)
		if (rows->way[i].how.mode->by_page && rows->way[i].insn == after->insn &&
		    &rows->way[i] != after)
			return &rows->way[i];
	return NULL;
}

static void print_change(const struct way *from, const struct way *to)
{
	const s64 change = (s64)(median(from) * 1000 / MAX(median(to), 1)) - 1000;
	const u64 size = (u64)(change < 0 ? -change : change);

	print(" %c%llu.%llu%%", change < 0 ? '-' : '+', size / 10, size % 10);
}

static void print_way(const struct rows *rows, const struct way *way, u64 page, u64 pages,
		      unsigned cpus)
{
	u64 fastest = way->ns[0], slowest = way->ns[0];

	for (unsigned i = 0; i < way->runs; i++) {
		fastest = MIN(fastest, way->ns[i]);
		slowest = MAX(slowest, way->ns[i]);
	}
	print("  %s   %-8s %-8s %5u %7llu %4u   %llu.%03llu (%llu.%03llu to %llu.%03llu) GB/s",
	      page == GIB(1) ? "1G" : "2M", way->insn, way->pieces, cpus, pages, way->runs,
	      THOUSANDTHS(rate(pages * page, median(way))),
	      THOUSANDTHS(rate(pages * page, slowest)), THOUSANDTHS(rate(pages * page, fastest)));
	if (before(rows, way))
		print_change(before(rows, way), way);
	print("; %llu.%03llu us/fault, besides %llu ns; unmap %llu.%03llu ms, %llu round\n",
	      THOUSANDTHS(median(way) / pages), way->first->besides_ns,
	      THOUSANDTHS(way->first->unmap_ns / 1000), way->first->unmap_rounds);
}

static void print_counters(const struct rows *rows, u64 page, u64 pages)
{
	for (unsigned i = 0; i < rows->ways; i++) {
		const struct way *way = &rows->way[i];

		print("  %s   %-8s %-8s counted, a page: ", page == GIB(1) ? "1G" : "2M", way->insn,
		      way->pieces);
		counters_print(&way->counters, pages);
		print("\n");
	}
}

static void record(const struct leg *leg)
{
	char extent[16];

	extent_name(leg->extent, extent, sizeof(extent));
	print("BENCH fault mode=%s insn=%s size=%s extent=%s cpus=%u clock=%s pages=%llu run=%u "
	      "turn=%u faults=%llu ns=%llu clear_ns=%llu"
	      " besides_ns=%llu unmap_ns=%llu unmap_rounds=%llu pmu=%s",
	      leg->mode, leg->insn, leg->page == GIB(1) ? "1G" : "2M", extent, leg->cpus,
	      leg->cpus == 1 ? "cpu" : "wall", leg->pages, leg->run, leg->turn, leg->faults,
	      leg->ns, leg->clear_ns, leg->besides_ns, leg->unmap_ns, leg->unmap_rounds,
	      leg->pmu[0] ? leg->pmu : "none");
	leg_work_print(&leg->work);
	print("\n");
}

/* ---- legs ---- */

static bool another_run(unsigned run, u64 start, u64 cpu_start)
{
	if (fault_runs)
		return run < fault_runs;
	return run < RUNS_LEAST || (run < RUNS_MAX && clock_cpu_ns() - cpu_start < BUDGET_NS &&
				    clock_ns() - start < LIMIT_NS);
}

static bool run_cpus(u64 page, u64 pages, unsigned cpus)
{
	static struct rows rows;
	const u64 start = clock_ns(), cpu_start = clock_cpu_ns();
	bool ok = true;

	add_ways(&rows, page, cpus);
	for (unsigned i = 0; i < rows.ways && pages > 1; i++)
		ok &= touch_region(&(struct leg){.page = page, .pages = 1, .cpus = 1},
				   &rows.way[i].how, NULL, 0);
	for (unsigned run = 0; another_run(run, start, cpu_start) && !input_stop_asked(); run++)
		for (unsigned i = 0; i < rows.ways && !input_stop_asked(); i++)
			ok &= run_leg(&rows.way[(i + run) % rows.ways], page, pages, cpus);
	for (unsigned i = 0; i < rows.ways && cpus == 1 && !input_stop_asked(); i++)
		ok &= run_counted(&rows.way[i], page, pages);
	for (unsigned i = 0; i < rows.ways; i++)
		if (rows.way[i].runs)
			print_way(&rows, &rows.way[i], page, pages, cpus);
	if (cpus == 1 && pmu_turns() > 0)
		print_counters(&rows, page, pages);
	return ok;
}

static bool run_size(u64 page)
{
	const unsigned all = MIN(cpumask_weight(&cpus_online), CPUS_MOST);
	u64 grown = pool_grow(pool_for(page), hvo_mode_selected(), MAX(fault_bytes / page, 1));
	void *once = NULL;
	bool ok = true;

	/* so that the host backs it; a pool of all memory leaves none for the mapping's tables */
	while (grown > 0 && !(once = huge_map(grown * page, page, HUGE_RESERVE | HUGE_POPULATE)) &&
	       pool_shrink(pool_for(page), hvo_mode_selected(), 1) == 1)
		grown--;
	if (!once) {
		print("  %s   left out: no free memory for one page\n",
		      page == GIB(1) ? "1G" : "2M");
		return pool_shrink(pool_for(page), hvo_mode_selected(), grown) == grown;
	}
	huge_unmap(once);
	touched_bytes = grown * page;
	for (unsigned cpus = 1; cpus < all && !input_stop_asked(); cpus *= 2)
		ok &= run_cpus(page, grown, cpus);
	ok &= run_cpus(page, grown, all);
	return pool_shrink(pool_for(page), hvo_mode_selected(), grown) == grown && ok;
}

static bool bench_fault(void)
{
	bool ok = true;

	legs = SCRATCH(struct leg, LEGS_MAX);
	leg_count = 0;
	print("Touching a region of huge pages (Arora, \"mm/clear_huge_page: use multi-page "
	      "clearing\", 2023-04)\n\n"
	      "  size insn     pieces    CPUs   pages runs   brought, median (lowest to highest), "
	      "change against 4K\n");
	if (fault_size != 2)
		ok &= run_size(MIB(2));
	if (fault_size != 1 && cpu_has_1g_mappings() && !input_stop_asked())
		ok &= run_size(GIB(1));
	if (pmu_turns() == 0)
		print("  counters: %s\n", pmu_missing());
	ok &= account_machine();
	print("\n");
	for (unsigned i = 0; i < leg_count; i++)
		record(&legs[i]);
	return ok;
}

BENCH(fault,
      "touch a region of 2 MiB and 1 GiB pages, cleared in steps and in extents, with 1 to all "
      "CPUs (clearing series)",
      bench_fault);
