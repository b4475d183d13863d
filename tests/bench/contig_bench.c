/*
 * The S4 table: what it takes to find a 1 GiB page at run time, ten more at a time until memory ends (Gorman, "mm: page_alloc:
 * Assume huge tail pages are valid when allocating contiguous pages", 2023-04).
 *
 *   vanilla, skip, strict   all sections mapped, hvo=off, max_order=10: as Linux, the struct pages are there and are read
 *   index                   sections on demand, hvo=on, max_order=18
 *
 *   memory=fresh   everything closed, then opened as the mode has it; nothing else in use
 *   memory=aged    all of memory was taken in pieces of 256 KiB; in some of them, all over memory, single movable pages
 *                  stay, in every eighth block or so. Every 1 GiB page has to be made by moving some; afterwards the
 *                  contents of all of them are verified
 *
 * Each page is one call, timed alone; rows are steps of ten. The scan is counted: struct pages read per step.
 */
#include <arch/clock.h>

#include "kernel/bench.h"
#include "kernel/cmdline.h"
#include "kernel/input.h"
#include "kernel/machine_page.h"
#include "kernel/percpu.h"
#include "kernel/printk.h"
#include "kernel/string.h"
#include "kernel/verdict.h"
#include "mm/account.h"
#include "mm/buddy.h"
#include "mm/contig.h"
#include "mm/memmap_open.h"
#include "mm/pcp.h"
#include "mm/pool.h"
#include "mm/section.h"
#include "tests/bench/contig_aged.h"
#include "tests/bench/sort.h"

enum { STEP = 10, PAGES_MAX = 4096, SEARCHES_MAX = 8 };

enum { MEMORY_FRESH, MEMORY_AGED, MEMORIES, MEMORY_ALL = MEMORIES };
static const char *const memory_names[] = {"fresh", "aged"};
static unsigned contig_memory = MEMORY_ALL;
OPTION_CHOICE(memory, contig_memory, "fresh|aged|all", "state of the memory that the contig benchmark searches");

enum { SEARCHES_ALL }; /* behind it the rows of the table */
static unsigned contig_which = SEARCHES_ALL;
OPTION_ROW(searches, contig_which, contig_searches, "searches that the contig benchmark measures", .values = "all");

static u64 contig_pages = PAGES_MAX;
OPTION_U64(total, contig_pages, 1, PAGES_MAX, "1 GiB pages of the contig benchmark, at most");

/* What one search did in one state of memory. */
struct leg {
	const struct contig_search *search;
	unsigned memory;
	u64 pages;
	u64 ns[PAGES_MAX];                     /* of each page */
	u64 sorted[PAGES_MAX];
	struct contig_stats step[PAGES_MAX / STEP + 1];
	struct contig_stats all;
	bool verified;
};

static struct leg legs[SEARCHES_MAX];
static unsigned searches; /* of the table, as many as there is room for */

static bool is_ours(const struct leg *leg)
{
	return !leg->search->reads;
}

static const struct hvo_mode *leg_mode(const struct leg *leg)
{
	return hvo_mode_find(is_ours(leg) ? "on" : "off");
}

/* ---- the state a leg starts from ---- */

static void prepare(const struct leg *leg)
{
	static struct memmap_opened opened[ZONES_MAX];

	buddy_set_max_order(&mm_kernel, GIGA_ORDER);
	sections_close_all(&mm_kernel);
	if (is_ours(leg))
		return;
	memmap_open_all(&mm_kernel, SECTION_MAPPED, (struct memmap_threads){.value = 100, .percent = true}, opened);
	buddy_set_max_order(&mm_kernel, 10);
}

static void put_back(void)
{
	buddy_set_max_order(&mm_kernel, GIGA_ORDER);
	sections_close_all(&mm_kernel);
}

/* ---- running ---- */

static struct contig_stats stats_since(const struct contig_stats *before)
{
	return (struct contig_stats){.scanned = contig_totals.scanned - before->scanned,
				     .candidates = contig_totals.candidates - before->candidates,
				     .moved = {.pages = contig_totals.moved.pages - before->moved.pages,
					       .pooled = contig_totals.moved.pooled - before->moved.pooled,
					       .failed = contig_totals.moved.failed - before->moved.failed}};
}

/* One more page; false when there is none. */
static bool one_page(struct leg *leg)
{
	const struct contig_stats before = contig_totals;
	struct contig_stats *step = &leg->step[leg->pages / STEP];
	const u64 start = clock_ns();
	const bool got = pool_grow(&pool_1g, leg_mode(leg), 1) == 1;
	const u64 ns = clock_ns() - start;
	const struct contig_stats stats = stats_since(&before);

	if (!got)
		return false;
	step->scanned += stats.scanned;
	step->candidates += stats.candidates;
	step->moved.pages += stats.moved.pages;
	leg->all.scanned += stats.scanned;
	leg->all.moved.pages += stats.moved.pages;
	leg->ns[leg->pages++] = ns;
	return true;
}

static u64 mean(const u64 *ns, u64 count)
{
	u64 sum = 0;

	for (u64 i = 0; i < count; i++)
		sum += ns[i];
	return count ? sum / count : 0;
}

/* False if contents were lost or frames are unaccounted for. */
static bool run_leg(struct leg *leg)
{
	const struct contig_search *was = contig_search_select(leg->search);
	const u64 kept = pool_1g.pages;
	u64 aged = 0;
	bool ok = true;

	prepare(leg);
	if (leg->memory == MEMORY_AGED)
		aged = aged_begin();
	while (leg->pages < contig_pages && !input_stop_asked() && one_page(leg))
		;
	leg->verified = leg->memory == MEMORY_FRESH || aged_verify();
	if (!leg->verified || (leg->memory == MEMORY_AGED && aged == 0)) {
		print("  # %s: %s\n", leg->search->name, aged ? "contents of moved pages are lost" : "no memory could be aged");
		ok = false;
	}
	pool_shrink(&pool_1g, leg_mode(leg), pool_1g.pages - kept);
	if (leg->memory == MEMORY_AGED)
		aged_end();
	contig_search_select(was);
	memcpy(leg->sorted, leg->ns, leg->pages * sizeof(u64));
	sort_u64(leg->sorted, leg->pages);
	put_back();
	return mm_account(&mm_kernel, machine_pools) && ok;
}

/* ---- printing ---- */

static void print_us(u64 ns)
{
	print(" %9llu.%01llu", (unsigned long long)(ns / NS_PER_US), (unsigned long long)(ns / 100 % 10));
}

/* The value that `percent` of the sorted ones do not exceed. */
static u64 quantile(const u64 *sorted, u64 count, unsigned percent)
{
	return count ? sorted[MIN(count - 1, count * percent / 100)] : 0;
}

static void print_steps(u64 pages)
{
	print("\n  mean us per page in each step of %u; for what it moved and read see the records\n\n  pages  ", STEP);
	for (unsigned i = 0; i < searches; i++)
		print(" %11s", legs[i].search->name);
	print("\n");
	for (u64 first = 0; first < pages; first += STEP) {
		print("  %5llu  ", (unsigned long long)MIN(first + STEP, pages));
		for (unsigned i = 0; i < searches; i++) {
			if (legs[i].pages > first)
				print_us(mean(&legs[i].ns[first], MIN(STEP, legs[i].pages - first)));
			else
				print("           -");
		}
		print("\n");
	}
}

/* S4's rows: latency of all pages of a leg. Max-n is n percent from the fastest on, as there. */
static void print_latencies(void)
{
	static const struct {
		const char *name;
		unsigned percent;
	} rows[] = {{"Min", 0},	     {"1st-qrtle", 25}, {"2nd-qrtle", 50}, {"3rd-qrtle", 75}, {"Max-90", 90},
		    {"Max-95", 95}, {"Max-99", 99},	{"Max", 100}};

	print("\n  latency in us of every page\n\n");
	for (unsigned r = 0; r < ARRAY_LEN(rows); r++) {
		print("  %-10s", rows[r].name);
		for (unsigned i = 0; i < searches; i++)
			print_us(quantile(legs[i].sorted, legs[i].pages, rows[r].percent));
		print("\n");
	}
	print("  %-10s", "Amean");
	for (unsigned i = 0; i < searches; i++)
		print_us(mean(legs[i].ns, legs[i].pages));
	print("\n  %-10s", "pages");
	for (unsigned i = 0; i < searches; i++)
		print(" %11llu", (unsigned long long)legs[i].pages);
	print("\n  %-10s", "read");
	for (unsigned i = 0; i < searches; i++)
		print(" %11llu", (unsigned long long)legs[i].all.scanned);
	print("\n  %-10s", "moved");
	for (unsigned i = 0; i < searches; i++)
		print(" %11llu", (unsigned long long)legs[i].all.moved.pages);
	print("\n\n");
}

static void record_step(const struct leg *leg, u64 first)
{
	static u64 sorted[STEP];
	const u64 count = MIN(STEP, leg->pages - first);
	const struct contig_stats *stats = &leg->step[first / STEP];

	memcpy(sorted, &leg->ns[first], count * sizeof(u64));
	sort_u64(sorted, count);
	print("BENCH contig mode=%s memory=%s step=%u total=%llu ns_min=%llu ns_mean=%llu ns_p25=%llu ns_p50=%llu"
	      " ns_p75=%llu ns_p90=%llu ns_p95=%llu ns_p99=%llu ns_max=%llu scanned_pages=%llu migrated_pages=%llu"
	      " candidates=%llu verified=%u\n",
	      leg->search->name, memory_names[leg->memory], STEP, (unsigned long long)(first + count),
	      (unsigned long long)sorted[0], (unsigned long long)mean(sorted, count),
	      (unsigned long long)quantile(sorted, count, 25), (unsigned long long)quantile(sorted, count, 50),
	      (unsigned long long)quantile(sorted, count, 75), (unsigned long long)quantile(sorted, count, 90),
	      (unsigned long long)quantile(sorted, count, 95), (unsigned long long)quantile(sorted, count, 99),
	      (unsigned long long)sorted[count - 1], (unsigned long long)stats->scanned,
	      (unsigned long long)stats->moved.pages, (unsigned long long)stats->candidates, leg->verified);
}

/* The first search is the baseline; beside it the one that the machine uses. */
static void note_gain(void)
{
	const struct leg *before = &legs[0], *ours = before;

	for (unsigned i = 1; i < searches; i++)
		if (legs[i].search == contig_search_selected())
			ours = &legs[i];
	if (ours != before && before->pages > 0 && ours->pages > 0)
		page_gain("contig", "1 GiB in %s memory: %s %llu us, %s %llu us", memory_names[ours->memory], ours->search->name,
			  (unsigned long long)(mean(ours->ns, ours->pages) / NS_PER_US), before->search->name,
			  (unsigned long long)(mean(before->ns, before->pages) / NS_PER_US));
}

static bool run_memory(unsigned memory)
{
	u64 pages = 0;
	bool ok = true;

	for (searches = 0; searches < SEARCHES_MAX && contig_searches[searches].name;)
		searches++;
	print("Making 1 GiB pages at run time (Gorman, \"Assume huge tail pages are valid when allocating contiguous pages\","
	      " 2023-04)\nmemory %s, %u CPUs\n",
	      memory_names[memory], cpumask_weight(&cpus_online));
	for (unsigned i = 0; i < searches; i++) {
		memset(&legs[i], 0, sizeof(legs[i]));
		legs[i].search = &contig_searches[i];
		legs[i].memory = memory;
		if ((contig_which == i + 1 || contig_which == SEARCHES_ALL) && !input_stop_asked())
			ok &= run_leg(&legs[i]);
		pages = MAX(pages, legs[i].pages);
	}
	if (pages == 0 && input_stop_asked())
		return ok;
	if (pages == 0) {
		print("  # skipped: this machine has no GiB to spare\n");
		verdict_count(0, 0, 1);
		return ok;
	}
	print_steps(pages);
	print_latencies();
	note_gain();
	for (unsigned i = 0; i < searches; i++)
		for (u64 first = 0; first < legs[i].pages; first += STEP)
			record_step(&legs[i], first);
	print("\n");
	return ok;
}

static bool bench_contig(void)
{
	bool ok = true;

	for (unsigned memory = 0; memory < MEMORIES; memory++)
		if ((contig_memory == memory || contig_memory == MEMORY_ALL) && !input_stop_asked())
			ok &= run_memory(memory);
	return ok;
}

BENCH(contig, "make 1 GiB pages at run time, with the searches of S4 and by an index", bench_contig);
