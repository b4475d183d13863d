/*
 * The table of the per-CPU list series (Weiner, "mm: page_alloc: remove pcppage migratetype
 * caching", 2023-09, and the thread below it). Batches of 10,000 pages are allocated and freed in
 * four ways: with the type cached while pages lie on per-CPU lists (before), with the series' first
 * patch, with all of it, and with this kernel's own way (mm/page/pcp_types.c).
 *
 * As there, lists hold a third of a batch, so that each batch fills and drains them. Pages are
 * freed one by one and, every other time, in bulk. The four ways take turns, and the table gives
 * the median and the range of the ratios over the rounds. The published figures are of the first
 * patch alone: first / on.
 *
 *   look-ups   of a block's type, for each page fetched from the zone, freed, or given back; the
 *              cache exists to save them
 *   stale      pages that a drain puts on the list of a type that their block no longer has,
 *              because blocks were retyped while their pages lay on the lists
 *
 * With one CPU and -icount shift=0 a picosecond is a thousandth of an instruction: `make
 * bench-icount`.
 */
#include "mm/page/pcp_types.h"
#include "mm/zone/migratetype.h"
#include "tests/bench/measure.h"
#include "tests/bench/work.h"

enum {
	BATCH = 10000,
	HIGH = BATCH / 3,
	ROUNDS = 10,
	BATCHES = 21,
	STALE_PAGES = 2000,
	WAYS_MAX = 6
};

struct leg {
	u64 ps_alloc, ps_free; /* per page */
	u64 freed, bulk;       /* pages freed; of these, pages freed in bulk */
	struct pcp_stats stats;
	u64 stale;
	struct leg_work work;
};

static struct page *pages[BATCH];
static struct leg legs[WAYS_MAX][ROUNDS];
static unsigned ways;

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

static void free_batch(bool bulk)
{
	for (unsigned i = 0; i < BATCH && !bulk; i++)
		page_free(pages[i]);
	if (bulk)
		page_free_bulk(pages, BATCH);
}

/* Medians over the batches are used, because other processes on the host disturb single batches. */
static bool batches(struct leg *leg)
{
	u64 alloc[BATCHES], free[BATCHES];

	for (unsigned b = 0; b < BATCHES; b++) {
		const u64 start = clock_ns();
		u64 middle;

		if (!alloc_batch())
			return false;
		middle = clock_ns();
		free_batch(b % 2);
		free[b] = clock_ns() - middle;
		alloc[b] = middle - start;
		leg->freed += BATCH;
		leg->bulk += b % 2 ? BATCH : 0;
	}
	leg->ps_alloc = median_u64(alloc, BATCHES) * 1000 / BATCH;
	leg->ps_free = median_u64(free, BATCHES) * 1000 / BATCH;
	return true;
}

/*
 * Give the blocks of pages[0..count) another type, or restore theirs. Pages next to each other
 * share blocks.
 */
static void retype(unsigned count, enum migratetype type)
{
	u32 last = BLOCK_NONE;

	for (unsigned i = 0; i < count; i++) {
		const u32 index = (u32)(page_pfn(pages[i]) >> BLOCK_ORDER);

		if (index != last && block_look_at(&mm_kernel, index).state == BLOCK_FULL)
			migratetype_set(&mm_kernel, index, 1, type);
		last = index;
	}
}

/*
 * Count stale pages: retype blocks while some of their pages lie on the lists and the rest is in
 * use, then drain.
 */
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

static bool run_leg(struct leg *leg, const struct pcp_types *types)
{
	static u64 most[WAYS_MAX];
	struct pcp_stats before;
	bool ok;

	*leg = (struct leg){0};
	leg_work_prepare(&leg->work);
	pcp_set_types(&mm_kernel, types);
	leg_work_warm(&leg->work, &most[types - pcp_types], BATCH);
	before = pcp_stats(&mm_kernel);
	leg_work_begin(&leg->work);
	ok = batches(leg);
	leg_work_end(&leg->work);
	leg->stats = pcp_stats_since(&before);
	count_stale(leg);
	return ok;
}

/* Look-ups are exact: each way makes those of its row in mm/page/pcp_types.c and no others. */
static bool counts_right(const struct leg *leg, const struct pcp_types *types)
{
	const struct pcp_stats *s = &leg->stats;
	const u64 drain = types->stored ? 0 : types->by_page ? s->drained : s->evictions;
	const bool right = s->lookups == leg->freed + (types->twice ? leg->bulk : 0) &&
			   s->drain_lookups == drain && (s->fetch_lookups > 0) == types->twice &&
			   (leg->stale > 0) == types->stored;

	if (!right)
		pr_err("pcp: %s: %llu look-ups for %llu pages freed, %llu for %llu given back, "
		       "%llu on fetching, %llu stale",
		       types->name, s->lookups, leg->freed, s->drain_lookups, s->drained,
		       s->fetch_lookups, leg->stale);
	return right;
}

/* ---- output ---- */

static void print_record(const struct leg *leg, const struct pcp_types *types, unsigned run)
{
	print("BENCH pcp type_cache=%s pages=%u run=%u ns_alloc=%llu.%03llu ns_free=%llu.%03llu "
	      "lookups=%llu freed=%llu "
	      "fetch_lookups=%llu drain_lookups=%llu drained=%llu stale=%llu",
	      types->name, BATCH, run, THOUSANDTHS(leg->ps_alloc), THOUSANDTHS(leg->ps_free),
	      leg->stats.lookups, leg->freed, leg->stats.fetch_lookups, leg->stats.drain_lookups,
	      leg->stats.drained, leg->stale);
	leg_work_print(&leg->work);
	print("\n");
}

/* Print one way over all rounds: medians, and look-ups per page freed. */
static void print_way(unsigned way, unsigned rounds)
{
	u64 alloc[ROUNDS], free[ROUNDS];
	const struct leg *leg = &legs[way][0]; /* counts are the same in all rounds */

	for (unsigned r = 0; r < rounds; r++) {
		alloc[r] = legs[way][r].ps_alloc;
		free[r] = legs[way][r].ps_free;
	}
	print("  %-7s %5llu.%03llu %5llu.%03llu   %5llu.%03llu %5llu.%03llu %5llu.%03llu %8llu "
	      "%7llu\n",
	      pcp_types[way].name, THOUSANDTHS(median_u64(alloc, rounds)),
	      THOUSANDTHS(median_u64(free, rounds)),
	      THOUSANDTHS(leg->stats.fetch_lookups * 1000 / leg->freed),
	      THOUSANDTHS(leg->stats.lookups * 1000 / leg->freed),
	      THOUSANDTHS(leg->stats.drain_lookups * 1000 / leg->freed), leg->stats.drain_lookups,
	      leg->stale);
}

static u64 both(const struct leg *leg)
{
	return leg->ps_alloc + leg->ps_free;
}

static void print_ratio(unsigned a, unsigned b, const char *what)
{
	const char *after = pcp_types[a].name, *before = pcp_types[b].name;
	u64 ratio[ROUNDS], middle;

	for (unsigned r = 0; r < ROUNDS; r++)
		ratio[r] = both(&legs[a][r]) * 10000 / MAX(both(&legs[b][r]), 1);
	middle = median_u64(ratio, ROUNDS);
	print("  %-5s / %-4s  %llu.%04llu (%llu.%04llu to %llu.%04llu)   %s\n", after, before,
	      middle / 10000, middle % 10000, ratio[0] / 10000, ratio[0] % 10000,
	      ratio[ROUNDS - 1] / 10000, ratio[ROUNDS - 1] % 10000, what);
}

/* ---- rounds ---- */

/* Run each way once, with another way first in each round. */
static bool run_round(unsigned round)
{
	bool ok = true;

	for (unsigned i = 0; i < ways && ok; i++) {
		const unsigned way = (round + i) % ways;

		ok = run_leg(&legs[way][round], &pcp_types[way]) &&
		     counts_right(&legs[way][round], &pcp_types[way]);
	}
	return ok;
}

static bool rounds(void)
{
	unsigned done;
	bool ok = true;

	for (ways = 0; ways < WAYS_MAX && pcp_types[ways].name;)
		ways++;
	run_round(0); /* warm */
	for (done = 0; done < ROUNDS && ok && !input_stop_asked(); done += ok)
		ok = run_round(done);
	if (!ok || done == 0)
		return ok;
	print("           ns a page            look-ups a page freed\n"
	      "  types       alloc      free    fetched     freed  drained  drained   stale\n");
	for (unsigned way = 0; way < ways; way++)
		print_way(way, done);
	print("  medians of %u rounds; a round frees %u pages a way\n\n", done, BATCHES * BATCH);
	if (done == ROUNDS) {
		print_ratio(PCP_TYPES_FIRST, PCP_TYPES_ON,
			    "the series' first patch : before; published 0.9743 of the time, "
			    "1.0014 of the instructions");
		print_ratio(PCP_TYPES_EACH, PCP_TYPES_ON, "the whole series : before");
		print_ratio(PCP_TYPES_OFF, PCP_TYPES_EACH, "ours : the whole series");
		print_ratio(PCP_TYPES_OFF, PCP_TYPES_ON, "ours : before");
	}
	print("\n");
	for (unsigned round = 0; round < done; round++)
		for (unsigned way = 0; way < ways; way++)
			print_record(&legs[way][round], &pcp_types[way], round + 1);
	return true;
}

static bool pcp_bench(void)
{
	const struct pcp_types *types;
	struct option_saved saved;
	char high[16];
	bool ok;

	format(high, sizeof(high), "%u", HIGH);
	if (option_set_for_now(option_find("pcp.high"), high, &saved) < 0)
		return false;
	/* also empties the lists, as `high` is computed anew */
	types = pcp_set_types(&mm_kernel, &pcp_types[0]);
	print("\nPages on per-CPU lists with and without a cached type (Weiner, \"mm: page_alloc: "
	      "remove pcppage migratetype "
	      "caching\", 2023-09)\nBatches of %u, lists of %u\n\n",
	      BATCH, HIGH);
	ok = rounds();
	option_put_back(&saved, 1);
	pcp_set_types(&mm_kernel, types);
	return ok;
}

BENCH(pcp, "per-CPU page lists with and without a cached migratetype", pcp_bench);
