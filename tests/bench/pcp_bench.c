/*
 * The S3 table: batches of 10,000 pages allocated and freed, with the type cached while pages lie on per-CPU lists (before)
 * and without (Weiner, "mm: page_alloc: remove pcppage migratetype caching", 2023-09, and the thread below it).
 *
 * As there, lists hold a third of a batch, so that each batch fills and drains them; both ways of freeing, one by one and in
 * bulk, are counted: exactly one pageblock look-up per page freed, on both. Runs with and without take turns, and the table
 * gives the 95% interval of without / with over the pairs. `stale`: pages that a drain puts on the list of a type their block no
 * longer has, when blocks are retyped while their pages lie on the lists.
 *
 * Below it, the thread's page_fault1 on one CPU: allocate, clear, map, and at the end unmap and free all.
 */
#include <arch/clear.h>
#include <arch/clock.h>

#include "kernel/bench.h"
#include "kernel/input.h"
#include "kernel/machine_page.h"
#include "kernel/printk.h"
#include "kernel/shootdown.h"
#include "mm/migratetype.h"
#include "mm/page_alloc.h"
#include "mm/pcp.h"
#include "mm/vmap.h"

enum { BATCH = 10000, HIGH = BATCH / 3, PAIRS = 10, ROUNDS = 21, REGION = 512, REGIONS = 10, STALE_PAGES = 2000 };

struct leg {
	u64 ns_alloc, ns_free; /* picoseconds a page */
	u64 lookups, drain_lookups, stale, freed;
	u64 ns_fault;
};

static struct page *pages[BATCH];
static virt_t region;

static u64 per_page_ps(u64 ns, u64 count)
{
	return count ? ns * 1000 / count : 0;
}

static bool alloc_batch(void)
{
	for (unsigned i = 0; i < BATCH; i++) {
		pages[i] = page_alloc(0, USE_MOVABLE, 0, NODE_NONE);
		if (!pages[i]) {
			page_free_bulk(pages, i);
			return false;
		}
	}
	return true;
}

static u64 median(u64 values[ROUNDS])
{
	for (unsigned i = 1; i < ROUNDS; i++)
		for (unsigned j = i; j > 0 && values[j - 1] > values[j]; j--) {
			const u64 larger = values[j - 1];

			values[j - 1] = values[j];
			values[j] = larger;
		}
	return values[ROUNDS / 2];
}

/* Odd rounds free in bulk. The median of the rounds: who else uses the host disturbs the others. */
static bool batches(struct leg *leg)
{
	u64 alloc[ROUNDS], free[ROUNDS], start, middle;

	for (unsigned round = 0; round < ROUNDS; round++) {
		start = clock_ns();
		if (!alloc_batch())
			return false;
		middle = clock_ns();
		if (round % 2)
			page_free_bulk(pages, BATCH);
		else
			for (unsigned i = 0; i < BATCH; i++)
				page_free(pages[i]);
		alloc[round] = middle - start;
		free[round] = clock_ns() - middle;
		leg->freed += BATCH;
	}
	leg->ns_alloc = per_page_ps(median(alloc), BATCH);
	leg->ns_free = per_page_ps(median(free), BATCH);
	return true;
}

/* The hosted machine has no addresses for mappings: no such loop there. */
static bool faults(struct leg *leg)
{
	const u64 start = clock_ns();

	for (unsigned turn = 0; turn < REGIONS && region; turn++) {
		unsigned mapped = 0;

		for (; mapped < REGION; mapped++) {
			struct page *page = page_alloc(0, USE_MOVABLE, 0, NODE_NONE);

			if (!page)
				break;
			clear_pages(page_address(page), 1);
			vmap_map(region + mapped * PAGE_SIZE, page_pfn(page) << PAGE_SHIFT, PAGE_SIZE, PT_RW, PT_PAGE);
			pages[mapped] = page;
		}
		vmap_unmap((void *)region, mapped * PAGE_SIZE);
		shootdown_full(SHOOTDOWN_SKIP_IDLE);
		for (unsigned i = 0; i < mapped; i++)
			page_free(pages[i]);
		if (mapped < REGION)
			return false;
	}
	leg->ns_fault = region ? per_page_ps(clock_ns() - start, REGIONS * REGION) : 0;
	return true;
}

/* Give the blocks of pages[0..count) another type, or theirs back. Pages next to each other share blocks. */
static void retype(unsigned count, enum migratetype type)
{
	u32 last = BLOCK_NONE;

	for (unsigned i = 0; i < count; i++) {
		const u32 index = (u32)(page_pfn(pages[i]) >> BLOCK_ORDER);

		if (index != last && block_at(&mm_kernel, index)->state == BLOCK_FULL)
			migratetype_set(&mm_kernel, index, 1, type);
		last = index;
	}
}

/* Blocks that are retyped while some of their pages lie on the lists, and the rest is in use: then drained. */
static void count_stale(struct leg *leg)
{
	const size_t got = page_alloc_bulk(USE_MOVABLE, 0, NODE_NONE, pages, STALE_PAGES);
	const u64 before = pcp_stats(&mm_kernel).stale;

	page_free_bulk(pages, got / 2);
	retype(got / 2, MIGRATE_RECLAIMABLE);
	pcp_drain_all(&mm_kernel);
	retype(got / 2, MIGRATE_MOVABLE);
	page_free_bulk(pages + got / 2, got - got / 2);
	pcp_drain_all(&mm_kernel);
	leg->stale = pcp_stats(&mm_kernel).stale - before;
}

static bool run_leg(struct leg *leg, bool type_cache)
{
	struct pcp_stats before, after;
	bool ok;

	*leg = (struct leg){0};
	pcp_drain_all(&mm_kernel);
	pcp_set_type_cache(type_cache);
	before = pcp_stats(&mm_kernel);
	ok = batches(leg);
	after = pcp_stats(&mm_kernel);
	leg->lookups = after.lookups - before.lookups;
	leg->drain_lookups = after.drain_lookups - before.drain_lookups;
	ok &= faults(leg);
	count_stale(leg);
	pcp_drain_all(&mm_kernel);
	return ok;
}

static void print_record(const struct leg *leg, bool type_cache, unsigned run)
{
	print("BENCH pcp type_cache=%s pages=%u run=%u ns_alloc=%llu.%03llu ns_free=%llu.%03llu lookups=%llu freed=%llu "
	      "drain_lookups=%llu stale=%llu ns_fault=%llu\n",
	      type_cache ? "on" : "off", BATCH, run, (unsigned long long)(leg->ns_alloc / 1000),
	      (unsigned long long)(leg->ns_alloc % 1000), (unsigned long long)(leg->ns_free / 1000),
	      (unsigned long long)(leg->ns_free % 1000), (unsigned long long)leg->lookups,
	      (unsigned long long)leg->freed, (unsigned long long)leg->drain_lookups, (unsigned long long)leg->stale,
	      (unsigned long long)(leg->ns_fault / 1000));
}

/* ---- the interval ---- */

static s64 square_root(u64 x)
{
	u64 root = 0;

	for (u64 bit = 1ULL << 31; bit; bit >>= 1)
		if ((root + bit) * (root + bit) <= x)
			root += bit;
	return (s64)root;
}

/* Mean and half width of the 95% interval of PAIRS ratios in units of 1/100000: Student's t with 9 degrees of freedom. */
static void interval(const s64 ratio[PAIRS], s64 *mean, s64 *half)
{
	u64 squares = 0;

	*mean = 0;
	for (unsigned i = 0; i < PAIRS; i++)
		*mean += ratio[i];
	*mean /= PAIRS;
	for (unsigned i = 0; i < PAIRS; i++)
		squares += (u64)((ratio[i] - *mean) * (ratio[i] - *mean));
	*half = 2262 * square_root(squares / (PAIRS - 1)) / 3162; /* t * sd / sqrt(10) */
}

static void print_ratio(const char *name, const s64 ratio[PAIRS])
{
	s64 mean, half;

	interval(ratio, &mean, &half);
	page_gain("pcp", "%s without a cached type / with one: %lld.%04lld +- %lld.%04lld", name, (long long)(mean / 100000),
		  (long long)(mean % 100000 / 10), (long long)(half / 100000), (long long)(half % 100000 / 10));
	print("  %-8s without / with: %lld.%04lld, 95%% interval %lld.%04lld to %lld.%04lld%s\n", name,
	      (long long)(mean / 100000), (long long)(mean % 100000 / 10), (long long)((mean - half) / 100000),
	      (long long)((mean - half) % 100000 / 10), (long long)((mean + half) / 100000),
	      (long long)((mean + half) % 100000 / 10), mean - half <= 100000 ? ": not slower" : ": SLOWER");
}

static bool check_leg(const struct leg *leg, bool type_cache)
{
	if (leg->lookups != leg->freed)
		pr_err("pcp: %llu look-ups for %llu pages freed", (unsigned long long)leg->lookups,
		       (unsigned long long)leg->freed);
	if ((leg->stale > 0) != type_cache)
		pr_err("pcp: %llu stale pages with the cache %s", (unsigned long long)leg->stale, type_cache ? "on" : "off");
	return leg->lookups == leg->freed && (leg->stale > 0) == type_cache;
}

static bool pairs(void)
{
	static struct leg off[PAIRS], on[PAIRS], warm;
	s64 batch[PAIRS], fault[PAIRS];
	unsigned done;
	bool ok = run_leg(&warm, false) && run_leg(&warm, true);

	print("  pair   without: alloc    free   fault  look-ups  stale   with: alloc    free   fault  look-ups  stale\n");
	for (done = 0; done < PAIRS && ok && !input_stop_asked(); done++) {
		const unsigned i = done;

		if (i % 2)
			ok = run_leg(&on[i], true) && run_leg(&off[i], false);
		else
			ok = run_leg(&off[i], false) && run_leg(&on[i], true);
		if (!ok)
			break;
		ok = check_leg(&off[i], false);
		ok = check_leg(&on[i], true) && ok;
		print("  %4u        %11llu %7llu %7llu %9llu %6llu  %12llu %7llu %7llu %9llu %6llu\n", i + 1,
		      (unsigned long long)off[i].ns_alloc, (unsigned long long)off[i].ns_free,
		      (unsigned long long)off[i].ns_fault, (unsigned long long)off[i].lookups,
		      (unsigned long long)off[i].stale, (unsigned long long)on[i].ns_alloc,
		      (unsigned long long)on[i].ns_free, (unsigned long long)on[i].ns_fault,
		      (unsigned long long)on[i].lookups, (unsigned long long)on[i].stale);
		batch[i] = (s64)((off[i].ns_alloc + off[i].ns_free) * 100000 / MAX(on[i].ns_alloc + on[i].ns_free, 1));
		fault[i] = (s64)(off[i].ns_fault * 100000 / MAX(on[i].ns_fault, 1));
	}
	if (!ok)
		return false;
	print("  picoseconds a page; %u pages freed a run\n\n", ROUNDS * BATCH);
	if (done == PAIRS)
		print_ratio("batches", batch);
	if (done == PAIRS && region)
		print_ratio("faults", fault);
	print("\n");
	for (unsigned i = 0; i < done; i++) {
		print_record(&off[i], false, i + 1);
		print_record(&on[i], true, i + 1);
	}
	return true;
}

static bool pcp_bench(void)
{
	const u64 high = pcp_set_high(HIGH);
	const bool type_cache = pcp_set_type_cache(false);
	bool ok;

	print("\nPages on per-CPU lists with and without a cached type (Weiner, \"mm: page_alloc: remove pcppage migratetype "
	      "caching\", 2023-09)\nBatches of %u, lists of %u\n\n", BATCH, HIGH);
	region = vmap_reserve(REGION * PAGE_SIZE, PAGE_SIZE);
	ok = pairs();
	pcp_drain_all(&mm_kernel);
	pcp_set_type_cache(type_cache);
	pcp_set_high(high);
	return ok;
}

BENCH(pcp, "per-CPU page lists with and without a cached migratetype", pcp_bench);
