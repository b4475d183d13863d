/*
 * The S0 table: what it costs to grow and shrink a pool of huge pages in each HVO mode, and what it saves.
 *
 * Every leg starts from a reset state: all sections closed, then as many opened as the leg needs, in its mode's style, outside
 * the clock. Each leg is done once unmeasured first, so that the host behind a virtual machine has backed the memory,
 * and each leg says whether its blocks were fresh; where no section can be closed (small machines) it says `again`.
 *
 *   source=fresh      never allocated since their section was opened: bare for on, under a PMD leaf for the baselines
 *   source=recycled   every block was split to order 0, every page written, freed, and the per-CPU lists drained
 *   source=again      grown and shrunk once before
 *
 * Debt: what a mode postpones is printed beside it. debt_open: opening the sections before. debt_split: allocating
 * every returned block as two order-8 pages after, that is, giving it all its struct pages.
 */
#include <arch/clock.h>

#include "kernel/bench.h"
#include "kernel/call.h"
#include "kernel/cmdline.h"
#include "kernel/input.h"
#include "kernel/percpu.h"
#include "kernel/printk.h"
#include "kernel/string.h"
#include "kernel/verdict.h"
#include "mm/account.h"
#include "mm/meta.h"
#include "mm/pcp.h"
#include "mm/pool.h"
#include "mm/section.h"
#include "mm/vmemmap.h"

static u64 hvo_pages = 4096, hvo_busy;
OPTION_U64(pages, hvo_pages, 1, 1ULL << 30, "huge pages of the hvo benchmark (a sixteenth of it for unbatched)");
OPTION_U64(busy, hvo_busy, 0, 65535, "CPUs kept running other work during the hvo benchmark");

enum { SOURCE_FRESH, SOURCE_RECYCLED, SOURCE_AGAIN, SOURCES, SOURCE_ALL = SOURCES };
static const char *const source_names[] = {"fresh", "recycled", "again"};
static unsigned hvo_source = SOURCE_FRESH;
OPTION_CHOICE(source, hvo_source, "fresh|recycled|again|all", "state of the memory that the hvo benchmark's pool takes");

enum { SIZE_2M, SIZE_1G };
static unsigned hvo_size = SIZE_2M;
OPTION_CHOICE(size, hvo_size, "2M|1G", "page size of the hvo benchmark");

enum { UNBATCHED_SHARE = 16, DEBT_ORDER = BLOCK_ORDER - 1 };

struct leg {
	const struct hvo_mode *mode;
	const char *source;
	u64 pages; /* asked for */
	u64 done;
	u64 ns, debt_open_ns, debt_split_ns;
	struct shootdown_stats stats;
	u64 splits;
	s64 saved;
};

static struct pool *bench_pool(void)
{
	return hvo_size == SIZE_1G ? &pool_1g : &pool_2m;
}

/* ---- the state a leg starts from ---- */

/* Pages of the benchmark's size that are free in one class. */
static u64 free_of_class(enum free_class class)
{
	const unsigned order = bench_pool()->order;
	u64 pages = 0;

	for (unsigned z = 0; z < mm_kernel.zones; z++) {
		const struct zone *zone = &mm_kernel.zone[z];

		if (order == BLOCK_ORDER) {
			pages += zone->free_class[class] / BLOCK_FRAMES;
			continue;
		}
		for (unsigned type = 0; type < MIGRATE_TYPES; type++)
			for (u32 index = zone->block_list[class][type][order - BLOCK_ORDER]; index != BLOCK_NONE;
			     index = block_at(&mm_kernel, index)->next)
				pages++;
	}
	return pages;
}

/* Open sections of the mode's style until `pages` are free in it, or memory ends. */
static void open_for(const struct hvo_mode *mode, u64 pages)
{
	const enum section_style style = mode->mapped ? SECTION_MAPPED : SECTION_ON_DEMAND;
	const enum free_class class = mode->mapped ? FREE_MAPPED : FREE_BARE;

	for (unsigned z = mm_kernel.zones; z-- > 0;)
		while (free_of_class(class) < pages && section_open_next(&mm_kernel.zone[z], style) == 0)
			;
}

/* Fresh: no huge block is left, and the baselines find their sections under one leaf each, as they were initialised. */
static const char *leg_source(const struct hvo_mode *mode)
{
	if (free_of_class(FREE_HUGE) > 0)
		return "again";
	for (u64 section = section_first(&mm_kernel); section < section_end(&mm_kernel) && mode->mapped; section++)
		if (section_state(&mm_kernel, section) == SECTION_OPEN &&
		    section_style(&mm_kernel, section) == SECTION_MAPPED && !vmemmap_is_leaf(&mm_kernel, section))
			return "again";
	return "fresh";
}

/* False if no page is free in the state this mode starts from: on small machines no section can be closed. */
static bool leg_reset(struct leg *leg)
{
	const enum free_class class = leg->mode->mapped ? FREE_MAPPED : FREE_BARE;
	u64 start;

	sections_close_all(&mm_kernel);
	start = clock_ns();
	open_for(leg->mode, leg->pages);
	leg->debt_open_ns = clock_ns() - start;
	leg->source = leg_source(leg->mode);
	if (free_of_class(class) < leg->pages)
		leg->pages = free_of_class(class) * 15 / 16; /* leave what META needs */
	if (leg->pages == 0 && bench_pool()->order == GIGA_ORDER)
		leg->pages = free_of_class(class);
	return leg->pages > 0;
}

/* Allocate `pages` blocks' worth of order-0 pages, write each, free them all, drain: blocks are full and free again. */
static void recycle(u64 pages)
{
	const u64 frames = pages * order_pages(bench_pool()->order);
	struct page *chain = NULL;

	for (u64 i = 0; i < frames; i++) {
		struct page *page = page_alloc(0, USE_MOVABLE, 0, NODE_NONE);

		if (!page)
			break;
		*(volatile u64 *)page_address(page) = i;
		page->private[0] = (u64)(virt_t)chain;
		chain = page;
	}
	while (chain) {
		struct page *next = (struct page *)(virt_t)chain->private[0];

		page_free(chain);
		chain = next;
	}
	pcp_drain_all(&mm_kernel);
}

/* From the reset state to the leg's own source. */
static void leg_prepare(struct leg *leg, unsigned source)
{
	if (leg->source[0] != 'f')
		return; /* could not be reset: it stays what it is */
	if (source == SOURCE_RECYCLED)
		recycle(leg->pages);
	if (source == SOURCE_AGAIN) {
		const u64 grown = pool_grow(bench_pool(), leg->mode, leg->pages);

		pool_shrink(bench_pool(), leg->mode, grown);
	}
	leg->source = source_names[source];
}

/* ---- other CPUs at work ---- */

static bool busy_stop;

static void keep_busy(void *arg)
{
	volatile u64 *counter = arg;

	while (!atomic_load_relaxed(&busy_stop))
		(*counter)++;
}

static void busy_begin(void)
{
	static u64 counters[1024];
	u64 started = 0;
	cpu_t cpu;

	atomic_store_relaxed(&busy_stop, false);
	cpumask_foreach(cpu, &cpus_online) {
		if (started == hvo_busy)
			return;
		started += work_start(cpu, keep_busy, &counters[cpu % ARRAY_LEN(counters)]) == 0;
	}
}

static void busy_end(void)
{
	cpu_t cpu;

	atomic_store_relaxed(&busy_stop, true);
	cpumask_foreach(cpu, &cpus_online)
		if (cpu != cpu_id())
			work_wait(cpu, 0);
}

/* ---- one leg ---- */

static void leg_begin(struct leg *leg)
{
	shootdown_stats_reset_interrupted();
	shootdown_stats_read(&leg->stats);
	leg->splits = mm_kernel.pmd_splits;
	leg->ns = clock_ns();
}

static void leg_end(struct leg *leg)
{
	struct shootdown_stats now;

	leg->ns = clock_ns() - leg->ns;
	shootdown_stats_read(&now);
	leg->stats.flushes = now.flushes - leg->stats.flushes;
	leg->stats.ipis = now.ipis - leg->stats.ipis;
	leg->stats.skipped = now.skipped - leg->stats.skipped;
	leg->stats.interrupted = now.interrupted;
	leg->splits = mm_kernel.pmd_splits - leg->splits;
}

/* All returned memory as order-8 pages, chained through their private words, and back. Returns the time of the way there. */
static u64 split_debt(u64 pages)
{
	const u64 start = clock_ns();
	struct page *chain = NULL;
	u64 ns;

	for (u64 i = 0; i < pages * order_pages(bench_pool()->order - DEBT_ORDER); i++) {
		struct page *page = page_alloc(DEBT_ORDER, USE_MOVABLE, 0, NODE_NONE);

		if (!page)
			break;
		page->private[0] = (u64)(virt_t)chain;
		chain = page;
	}
	ns = clock_ns() - start;
	while (chain) {
		struct page *next = (struct page *)(virt_t)chain->private[0];

		page_free(chain);
		chain = next;
	}
	return ns;
}

/* ---- output ---- */

struct reference {
	u64 grow_ps, shrink_ps; /* off's, per page */
};

static u64 ps_per_page(const struct leg *leg)
{
	return leg->done ? leg->ns * 1000 / leg->done : 0;
}

static void print_head(const char *source)
{
	print("Growing and shrinking a pool of %s pages (Kravetz, \"Batch hugetlb vmemmap modification operations\", 2023-09)\n"
	      "%u CPUs, %llu busy, memory %s\n\n",
	      hvo_size == SIZE_1G ? "1 GiB" : "2 MiB", cpumask_weight(&cpus_online), (unsigned long long)hvo_busy, source);
	print("  flushes: rounds; ipis: messages; stops: CPUs interrupted; splits: PMDs; saved: frames of struct pages;\n"
	      "  : off: time per page against off; debt: opening the sections before, splitting all pages after\n\n");
	print("  %-9s %-6s %6s %11s %9s %7s %7s %5s %6s %7s %8s  %s\n", "mode", "op", "pages", "time ms", "us/page",
	      "flushes", "ipis", "stops", "splits", "saved", ": off", "debt ms");
}

static void print_leg(const struct leg *leg, const char *op, u64 off_ps)
{
	const u64 ps = ps_per_page(leg), ratio = off_ps ? ps * 100 / off_ps : 0;
	char debt[40], relative[24] = "-";

	if (off_ps)
		format(relative, sizeof(relative), "%llu.%02llux", (unsigned long long)(ratio / 100),
		       (unsigned long long)(ratio % 100));

	if (op[0] == 'g')
		format(debt, sizeof(debt), "%llu.%03llu before", (unsigned long long)(leg->debt_open_ns / NS_PER_MS),
		       (unsigned long long)(leg->debt_open_ns / NS_PER_US % 1000));
	else
		format(debt, sizeof(debt), "%llu.%03llu after", (unsigned long long)(leg->debt_split_ns / NS_PER_MS),
		       (unsigned long long)(leg->debt_split_ns / NS_PER_US % 1000));
	print("  %-9s %-6s %6llu %7llu.%03llu %5llu.%03llu %7llu %7llu %5llu %6llu %7lld %8s  %s\n",
	      leg->mode->name, op, (unsigned long long)leg->done, (unsigned long long)(leg->ns / NS_PER_MS),
	      (unsigned long long)(leg->ns / NS_PER_US % 1000), (unsigned long long)(ps / 1000000),
	      (unsigned long long)(ps / 1000 % 1000), (unsigned long long)leg->stats.flushes,
	      (unsigned long long)leg->stats.ipis, (unsigned long long)leg->stats.interrupted,
	      (unsigned long long)leg->splits, (long long)leg->saved, relative, debt);
}

static void record_leg(const struct leg *leg, const char *op)
{
	print("BENCH hvo mode=%s source=%s op=%s size=%s pages=%llu done=%llu cpus=%u busy=%llu run=1 ns=%llu flushes=%llu"
	      " splits=%llu ipis=%llu interrupted=%llu skipped=%llu frames_saved=%lld debt_open_ns=%llu debt_split_ns=%llu\n",
	      leg->mode->name, leg->source, op, hvo_size == SIZE_1G ? "1G" : "2M", (unsigned long long)leg->pages,
	      (unsigned long long)leg->done, cpumask_weight(&cpus_online), (unsigned long long)hvo_busy,
	      (unsigned long long)leg->ns, (unsigned long long)leg->stats.flushes,
	      (unsigned long long)leg->splits, (unsigned long long)leg->stats.ipis,
	      (unsigned long long)leg->stats.interrupted, (unsigned long long)leg->stats.skipped, (long long)leg->saved,
	      (unsigned long long)leg->debt_open_ns, (unsigned long long)leg->debt_split_ns);
}

/* ---- legs ---- */

/* Grow and shrink once from the state leg_reset() made. False if pages were lost. */
static bool run_legs(const struct hvo_mode *mode, struct leg *grow, struct leg *shrink)
{
	busy_begin();
	leg_begin(grow);
	grow->done = pool_grow(bench_pool(), mode, grow->pages);
	leg_end(grow);
	grow->saved = pool_frames_saved(bench_pool());

	*shrink = (struct leg){.mode = mode, .pages = grow->done, .debt_open_ns = grow->debt_open_ns, .source = grow->source};
	leg_begin(shrink);
	shrink->done = pool_shrink(bench_pool(), mode, grow->done);
	leg_end(shrink);
	busy_end();
	shrink->debt_split_ns = split_debt(shrink->done);
	grow->debt_split_ns = shrink->debt_split_ns;
	if (shrink->done != grow->done)
		pr_err("hvo: %s: %llu of %llu pages came back", mode->name, (unsigned long long)shrink->done,
		       (unsigned long long)grow->done);
	return shrink->done == grow->done && grow->done > 0;
}

static void print_legs(const struct leg *grow, const struct leg *shrink, u64 wanted, const char *wanted_source,
		       const struct reference *off)
{
	print_leg(grow, "grow", off->grow_ps);
	print_leg(shrink, "shrink", off->shrink_ps);
	if (grow->pages < wanted)
		print("  # %s: %llu pages were asked for, %llu fit\n", grow->mode->name, (unsigned long long)wanted,
		      (unsigned long long)grow->pages);
	if (strcmp(grow->source, wanted_source) != 0)
		print("  # %s: source=again: this machine has no section that can be closed and opened anew\n",
		      grow->mode->name);
}

/* What one mode did; records are printed after the table, so that people can read it. */
struct mode_result {
	struct leg grow, shrink;
	bool ran;
};

static bool run_mode(const struct hvo_mode *mode, unsigned source, struct reference *off, struct mode_result *result)
{
	const u64 pages = mode->flush_each ? MAX(hvo_pages / UNBATCHED_SHARE, 1) : hvo_pages;
	struct leg *grow = &result->grow, *shrink = &result->shrink;

	for (unsigned run = 0; run < 2; run++) { /* the first has the host back the memory */
		*grow = (struct leg){.mode = mode, .pages = pages};
		if (!leg_reset(grow)) {
			print("  # %s: skipped: no memory of this machine can be opened %s\n", mode->name,
			      mode->mapped ? "mapped" : "on demand");
			verdict_count(0, 0, 1);
			return true;
		}
		leg_prepare(grow, source);
		if (!run_legs(mode, grow, shrink))
			return false;
	}
	if (!mode->optimise)
		*off = (struct reference){.grow_ps = ps_per_page(grow), .shrink_ps = ps_per_page(shrink)};
	print_legs(grow, shrink, pages, source_names[source], off);
	result->ran = true;
	return true;
}

static bool run_source(unsigned source)
{
	struct mode_result results[8] = {0};
	struct reference off = {0};
	bool ok = true;

	print_head(source_names[source]);
	for (unsigned i = 0; hvo_modes[i].name && !input_stop_asked(); i++) {
		if (hvo_modes[i].flush_each && (hvo_busy > 0 || source != SOURCE_FRESH))
			continue; /* a round per page: once, with idle CPUs, is enough */
		ok &= run_mode(&hvo_modes[i], source, &off, &results[i]);
	}
	sections_close_all(&mm_kernel);
	if (mm_account(&mm_kernel, machine_pools))
		print("\n  every frame accounted for, owner by owner\n\n");
	else
		ok = false;
	for (unsigned i = 0; hvo_modes[i].name; i++) {
		if (!results[i].ran)
			continue;
		record_leg(&results[i].grow, "alloc");
		record_leg(&results[i].shrink, "free");
	}
	return ok;
}

static bool bench_hvo(void)
{
	bool ok = true;

	for (unsigned source = 0; source < SOURCES; source++)
		if (hvo_source == source || hvo_source == SOURCE_ALL)
			ok &= run_source(source);
	return ok;
}

BENCH(hvo, "grow and shrink a pool of huge pages in every HVO mode (S0)", bench_hvo);
