/*
 * The table of the contiguous-range series (Gorman, "mm: page_alloc: Assume huge tail pages are
 * valid when allocating contiguous pages", 2023-04). It measures the cost of finding a 1 GiB page
 * at run time, ten more at a time until memory ends.
 *
 *   vanilla, revert, skip    the series' three columns: before, its reference (the older check),
 *                            after
 *   strict, step             the simpler fix that it mentions; the search of Linux 7.0
 *   index                    this kernel's: sections on demand, hvo=on, max_order=18
 *
 * The first five run with all sections mapped, hvo=off and max_order=10, as in Linux: struct pages
 * exist and are read.
 *
 *   memory=fresh   All sections are closed, then opened in the mode's style. Nothing else is in
 *                  use.
 *   memory=booted  As fresh, but the lowest 1 GiB ranges begin with a block of pages in use that
 *                  cannot be moved, as after a boot of Linux. `revert` leaves such a range at its
 *                  first page. `vanilla`, `skip` and `strict` read all of it, and isolation then
 *                  refuses it, for each page that is made.
 *   memory=aged    All of memory was taken in pieces of 256 KiB. In some of them, spread over all
 *                  memory, single movable pages stay, in every eighth block or so. Every 1 GiB page
 *                  then has to be made by moving some of them, and afterwards the contents of all
 *                  are verified.
 *
 * Each search runs twice and the second run counts, because in the first the host of an emulated
 * machine backs the memory and translates the code. A search fails if memory is not in its state
 * when the clock starts.
 *
 * Each page is one call, timed alone. A sample of the table is a batch of ten, in ms for one of its
 * pages, as in hpagealloc. The value in brackets is the share of vanilla's time that was saved.
 * Struct pages read are counted, and so are those whose reference count was raised and dropped. For
 * aged memory, `copying` is the share of the time that copying the moved frames alone would take
 * (memcpy() of scattered frames, measured in the same memory).
 */
#include "kernel/console/input.h"
#include "kernel/core/verdict.h"
#include "kernel/run/bench.h"
#include "mm/debug/account.h"
#include "mm/zone/memmap_open.h"
#include "mm/zone/section_close.h"
#include "tests/bench/contig_aged.h"
#include "tests/bench/sort.h"
#include "tests/bench/work.h"
#include "tests/kernel/max_order.h"
#include "tests/kernel/modes.h"
#include "tests/kernel/scratch.h"

enum { STEP = 10, PAGES_MAX = 4096, BATCHES = PAGES_MAX / STEP + 1, SEARCHES_MAX = 8 };

enum { MEMORY_FRESH, MEMORY_BOOTED, MEMORY_AGED, MEMORIES, MEMORY_ALL = MEMORIES };
static const char *const memory_names[] = {"fresh", "booted", "aged"};
static unsigned contig_memory = MEMORY_ALL;
OPTION_CHOICE(bench.contig.memory, contig_memory, "fresh|booted|aged|all",
	      "state of the memory that is searched");

enum { SEARCHES_ALL }; /* further values are the rows of the table of searches */
static unsigned contig_which = SEARCHES_ALL;
OPTION_ROW(bench.contig.searches, contig_which, contig_searches, "searches that are measured",
	   .values = "all");

static u64 contig_pages = PAGES_MAX;
OPTION_U64(bench.contig.total, contig_pages, 1, PAGES_MAX, "1 GiB pages, at most");

/* The work for one batch of pages. */
struct step {
	u64 scanned, candidates, moved;
	struct work work;
};

/* Results of one search in one state of memory. */
struct leg {
	const struct contig_search *search;
	unsigned memory;
	u64 pages;
	u64 ns[PAGES_MAX];            /* of each page */
	u64 batches, sorted[BATCHES]; /* mean of each batch, in rising order */
	struct step step[BATCHES];
	struct contig_stats all;
	/* time in the calls; between them; from the first to the last */
	u64 ns_system, ns_user, ns_elapsed;
	/* time to copy one frame, and all that were moved; aged memory only */
	u64 copy_ps, copy_ns, copy_percent;
	struct leg_work work;
	bool verified;
};

static struct leg *legs;
static unsigned searches; /* number of searches in the table that `legs` has room for */

static bool is_ours(const struct leg *leg)
{
	return !leg->search->reads;
}

static const struct hvo_mode *leg_mode(const struct leg *leg)
{
	return hvo_mode_find(is_ours(leg) ? "on" : "off");
}

static void leg_clear(struct leg *leg, const struct contig_search *search, unsigned memory)
{
	memset(leg, 0, sizeof(*leg));
	leg->search = search;
	leg->memory = memory;
}

/* ---- the state a leg starts from ---- */

static void prepare(const struct leg *leg)
{
	static struct memmap_opened opened[ZONES_MAX];

	buddy_set_max_order(&mm_kernel, GIGA_ORDER);
	sections_close_all(&mm_kernel);
	if (is_ours(leg))
		return;
	memmap_open_all(&mm_kernel, &memmap_ways[WAY_EAGER],
			(struct memmap_threads){.value = 100, .percent = true}, opened);
	buddy_set_max_order(&mm_kernel, 10);
}

/* In booted memory: GiB with pages in use, at most a third of their zone. */
enum { KEPT_GIBS = 3 };
static pfn_t kept[KEPT_GIBS];
static unsigned kept_count;

/* Nothing refers to these pages, so nobody can move them. */
static void keep_pages(const struct leg *leg)
{
	const struct zone *zone = &mm_kernel.zone[mm_kernel.zones - 1];
	const u64 end = zone_end_gib(zone), first = zone_first_gib(zone);
	const u64 most = MIN((end - first) / 3, KEPT_GIBS);

	for (u64 number = first; number < end && kept_count < most; number++) {
		const pfn_t pfn = number << GIGA_ORDER;

		if (is_ours(leg)) /* nothing opened it yet */
			section_open(&mm_kernel, number * GIB_SECTIONS, SECTION_ON_DEMAND);
		if (contig_alloc_range(pfn, BLOCK_FRAMES) == 0)
			kept[kept_count++] = pfn;
	}
}

static void put_back(void)
{
	while (kept_count > 0)
		contig_free_range(kept[--kept_count], BLOCK_FRAMES);
	buddy_set_max_order(&mm_kernel, GIGA_ORDER);
	sections_close_all(&mm_kernel);
}

/*
 * Is memory in the state that the leg is about? Ours begins with no section open that could be
 * closed, the others with all. Booted memory has pages in the way.
 */
static bool leg_holds(const struct leg *leg)
{
	struct mm_usage usage;

	mm_usage(&usage);
	if (leg->memory == MEMORY_BOOTED && kept_count == 0)
		return false;
	return leg->memory == MEMORY_AGED || (usage.unopened > 0) == is_ours(leg);
}

/* ---- running ---- */

static struct contig_stats stats_since(const struct contig_stats *before)
{
	return (struct contig_stats){
		.scanned = contig_totals.scanned - before->scanned,
		.candidates = contig_totals.candidates - before->candidates,
		.counted = contig_totals.counted - before->counted,
		.moved = {.pages = contig_totals.moved.pages - before->moved.pages,
			  .pooled = contig_totals.moved.pooled - before->moved.pooled,
			  .failed = contig_totals.moved.failed - before->moved.failed}};
}

/* Make one more page; false if there is none. */
static bool one_page(struct leg *leg)
{
	const struct contig_stats before = contig_totals;
	struct step *step = &leg->step[leg->pages / STEP];
	struct leg_work work = {.inside = step->work};
	struct contig_stats stats;
	u64 start, ns;
	bool got;

	leg_work_prepare(&work);
	start = clock_ns();
	got = pool_grow(&pool_1g, leg_mode(leg), 1) == 1;
	ns = clock_ns() - start;
	leg_work_end(&work);
	stats = stats_since(&before);

	if (!got)
		return false;
	step->scanned += stats.scanned;
	step->candidates += stats.candidates;
	step->moved += stats.moved.pages;
	step->work = work.inside;
	leg->all.scanned += stats.scanned;
	leg->all.counted += stats.counted;
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

static void sort_batches(struct leg *leg)
{
	/* an incomplete batch is no sample, unless it is the only one */
	leg->batches = MAX(leg->pages / STEP, leg->pages > 0);
	for (u64 b = 0; b < leg->batches; b++)
		leg->sorted[b] = mean(&leg->ns[b * STEP], MIN(STEP, leg->pages - b * STEP));
	sort_u64(leg->sorted, leg->batches);
}

/*
 * Make pages. False if contents were lost, or if memory could not be brought to the state that the
 * leg begins with.
 */
static bool make_pages(struct leg *leg)
{
	static u64 most[SEARCHES_MAX][MEMORIES];
	const u64 before = pool_1g.pages;
	u64 aged = 0, start;
	bool holds;

	leg_work_prepare(&leg->work);
	prepare(leg);
	if (leg->memory == MEMORY_BOOTED)
		keep_pages(leg);
	if (leg->memory == MEMORY_AGED) {
		aged = aged_begin();
		leg->copy_ps = aged_copy_ps();
	}
	holds = leg_holds(leg);
	leg_work_warm(&leg->work, &most[leg->search - contig_searches][leg->memory], contig_pages);
	leg_work_begin(&leg->work);
	start = clock_ns();
	while (leg->pages < contig_pages && !input_stop_asked() && one_page(leg))
		;
	leg->ns_elapsed = clock_ns() - start;
	leg_work_end(&leg->work);
	leg->verified = leg->memory != MEMORY_AGED || (aged > 0 && aged_verify());
	if (!leg->verified)
		print("  # %s: %s\n", leg->search->name,
		      aged ? "contents of moved pages are lost" : "no memory could be aged");
	if (!holds && leg->pages > 0)
		pr_err("contig: %s: memory is not %s", leg->search->name,
		       memory_names[leg->memory]);
	pool_shrink(&pool_1g, leg_mode(leg), pool_1g.pages - before);
	if (leg->memory == MEMORY_AGED)
		aged_end();
	return leg->verified && (holds || leg->pages == 0);
}

/* False if contents were lost, memory was not in its state, or frames are unaccounted for. */
static bool run_leg(struct leg *leg)
{
	const struct contig_search *was = contig_search_select(leg->search);
	bool ok = true;

	for (unsigned run = 0; run < 2 && ok && !input_stop_asked(); run++) {
		leg_clear(leg, leg->search, leg->memory);
		ok = make_pages(leg);
	}
	contig_search_select(was);
	for (u64 i = 0; i < leg->pages; i++)
		leg->ns_system += leg->ns[i];
	leg->ns_user = leg->ns_elapsed - leg->ns_system;
	leg->copy_ns = leg->all.moved.pages * leg->copy_ps / 1000;
	leg->copy_percent = leg->copy_ns * 100 / MAX(leg->ns_system, 1);
	sort_batches(leg);
	put_back();
	return account_machine() && ok;
}

/* ---- printing ---- */

/* Milliseconds with three decimals. */
static void print_ms(u64 ns)
{
	print(" %7llu.%03llu", ns / NS_PER_MS, ns / NS_PER_US % 1000);
}

/* Smallest of the sorted values that `percent` of them do not exceed, by the nearest rank. */
static u64 quantile(const u64 *sorted, u64 count, unsigned percent)
{
	const u64 rank = (count * percent + 50) / 100;

	return count ? sorted[MAX(rank, 1) - 1] : 0;
}

static void print_names(const char *head, const char *space)
{
	print("  %-18s", head);
	for (unsigned i = 0; i < searches; i++)
		print("%s%12s", i ? space : "", legs[i].search->name);
	print("\n");
}

static void print_steps(u64 pages)
{
	print("\n  mean ms per page in each batch of %u; the records tell what each batch moved "
	      "and read\n\n",
	      STEP);
	print_names("pages", "");
	for (u64 first = 0; first < pages; first += STEP) {
		print("  %-18llu", MIN(first + STEP, pages));
		for (unsigned i = 0; i < searches; i++) {
			if (legs[i].pages > first)
				print_ms(
					mean(&legs[i].ns[first], MIN(STEP, legs[i].pages - first)));
			else
				print(" %11s", "-");
		}
		print("\n");
	}
}

/* Print the share of vanilla's value that was saved, in hundredths of a percent. */
static void print_saved(u64 value, u64 vanilla)
{
	const s64 saved = vanilla ? ((s64)vanilla - (s64)value) * 10000 / (s64)vanilla : 0;
	const u64 size = (u64)(saved < 0 ? -saved : saved);

	print(" (%c%3llu.%02llu%%)", saved < 0 ? '-' : ' ', size / 100, size % 100);
}

static void print_row(const char *name, u64 (*value)(const struct leg *leg, unsigned arg),
		      unsigned arg)
{
	print("  %-18s", name);
	for (unsigned i = 0; i < searches; i++) {
		if (legs[i].batches == 0) {
			print(" %11s%s", "-", i ? "           " : "");
			continue;
		}
		print_ms(value(&legs[i], arg));
		if (i > 0 && legs[0].batches > 0)
			print_saved(value(&legs[i], arg), value(&legs[0], arg));
		else if (i > 0)
			print("           ");
	}
	print("\n");
}

static u64 latency(const struct leg *leg, unsigned percent)
{
	return quantile(leg->sorted, leg->batches, percent);
}

static u64 amean(const struct leg *leg, unsigned unused)
{
	return mean(leg->sorted, leg->batches);
}

/*
 * The rows of the contiguous-range series (Gorman 2023). Max-n is the slowest of the fastest n
 * percent, as there.
 */
static const struct {
	const char *name;
	unsigned percent;
} rows[] = {{"Min", 0},     {"1st-qrtle", 25}, {"2nd-qrtle", 50}, {"3rd-qrtle", 75},
	    {"Max-1", 1},   {"Max-5", 5},      {"Max-10", 10},    {"Max-90", 90},
	    {"Max-95", 95}, {"Max-99", 99},    {"Max", 100}};

static void print_latencies(void)
{
	print("\n  latency: ms for a page, batches of %u\n\n", STEP);
	print_names("", "           ");
	for (unsigned r = 0; r < ARRAY_LEN(rows); r++)
		print_row(rows[r].name, latency, rows[r].percent);
	print_row("Amean", amean, 0);
}

/*
 * Figures of a whole leg. There is no user mode; hpagealloc's User is the time that it spends
 * itself besides asking for pages.
 */
static const struct {
	const char *name;
	size_t at; /* in struct leg */
} durations[] = {{"Duration User", offsetof(struct leg, ns_user)},
		 {"Duration System", offsetof(struct leg, ns_system)},
		 {"Duration Elapsed", offsetof(struct leg, ns_elapsed)}},
  counts[] = {{"pages made", offsetof(struct leg, pages)},
	      {"struct pages read", offsetof(struct leg, all.scanned)},
	      {"references", offsetof(struct leg, all.counted)},
	      {"frames moved", offsetof(struct leg, all.moved.pages)},
	      {"copying, percent", offsetof(struct leg, copy_percent)}};

static u64 figure(const struct leg *leg, size_t at)
{
	return *(const u64 *)((const u8 *)leg + at);
}

static void print_durations(void)
{
	print("\n  seconds: in the calls (System), between them (User), both\n\n");
	print_names("", "");
	for (unsigned r = 0; r < ARRAY_LEN(durations); r++) {
		print("  %-18s", durations[r].name);
		/* dividing by 1000 makes print_ms() print seconds with three decimals */
		for (unsigned i = 0; i < searches; i++)
			print_ms(figure(&legs[i], durations[r].at) / 1000);
		print("\n");
	}
}

static void print_counts(void)
{
	for (unsigned r = 0; r < ARRAY_LEN(counts); r++) {
		print("  %-18s", counts[r].name);
		for (unsigned i = 0; i < searches; i++)
			print(" %11llu", figure(&legs[i], counts[r].at));
		print("\n");
	}
	print("\n");
}

/* All results of one search, for programs. */
static void record_table(const struct leg *leg)
{
	print("BENCH contig_table mode=%s memory=%s batches=%llu", leg->search->name,
	      memory_names[leg->memory], leg->batches);
	for (unsigned r = 0; r < ARRAY_LEN(rows); r++)
		print(" ns_p%u=%llu", rows[r].percent, latency(leg, rows[r].percent));
	print(" ns_mean=%llu ns_system=%llu ns_elapsed=%llu pages=%llu scanned_pages=%llu "
	      "references=%llu migrated_pages=%llu "
	      "copy_ns=%llu",
	      amean(leg, 0), leg->ns_system, leg->ns_elapsed, leg->pages, leg->all.scanned,
	      leg->all.counted, leg->all.moved.pages, leg->copy_ns);
	leg_work_print(&leg->work);
	print("\n");
}

/* Memory was prepared once, before all steps, so each has the same `before`. */
static void record_step(const struct leg *leg, u64 first)
{
	static u64 sorted[STEP];
	const u64 count = MIN(STEP, leg->pages - first);
	const struct step *step = &leg->step[first / STEP];
	const struct leg_work work = {
		.before = leg->work.before, .inside = step->work, .warm = leg->work.warm};

	memcpy(sorted, &leg->ns[first], count * sizeof(u64));
	sort_u64(sorted, count);
	print("BENCH contig mode=%s memory=%s step=%u total=%llu ns_min=%llu ns_mean=%llu "
	      "ns_p25=%llu ns_p50=%llu"
	      " ns_p75=%llu ns_p90=%llu ns_p95=%llu ns_p99=%llu ns_max=%llu scanned_pages=%llu "
	      "migrated_pages=%llu"
	      " candidates=%llu verified=%u",
	      leg->search->name, memory_names[leg->memory], STEP, first + count, sorted[0],
	      mean(sorted, count), quantile(sorted, count, 25), quantile(sorted, count, 50),
	      quantile(sorted, count, 75), quantile(sorted, count, 90), quantile(sorted, count, 95),
	      quantile(sorted, count, 99), sorted[count - 1], step->scanned, step->moved,
	      step->candidates, leg->verified);
	leg_work_print(&work);
	print("\n");
}

static bool run_memory(unsigned memory)
{
	u64 pages = 0;
	bool ok = true;

	for (searches = 0; searches < SEARCHES_MAX && contig_searches[searches].name;)
		searches++;
	print("Making 1 GiB pages at run time (Gorman, \"Assume huge tail pages are valid when "
	      "allocating contiguous pages\","
	      " 2023-04)\nmemory %s, %u CPUs; one run of each search, after one that does not "
	      "count\n",
	      memory_names[memory], cpumask_weight(&cpus_online));
	for (unsigned i = 0; i < searches; i++) {
		leg_clear(&legs[i], &contig_searches[i], memory);
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
	print_durations();
	print_counts();
	for (unsigned i = 0; i < searches; i++)
		for (u64 first = 0; first < legs[i].pages; first += STEP)
			record_step(&legs[i], first);
	for (unsigned i = 0; i < searches; i++)
		if (legs[i].pages > 0)
			record_table(&legs[i]);
	print("\n");
	return ok;
}

static bool bench_contig(void)
{
	bool ok = true;

	legs = SCRATCH(struct leg, SEARCHES_MAX);
	for (unsigned memory = 0; memory < MEMORIES; memory++)
		if ((contig_memory == memory || contig_memory == MEMORY_ALL) && !input_stop_asked())
			ok &= run_memory(memory);
	return ok;
}

BENCH(contig,
      "make 1 GiB pages at run time, with the searches of the contiguous-range series and by an "
      "index",
      bench_contig);
