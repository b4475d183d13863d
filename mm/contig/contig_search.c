/*
 * The search for a range: the table of the searches in contig.h, our own search, and the 1 GiB
 * pages made of the ranges found. The searches that read struct pages are in contig_read.c.
 */
#include "mm/contig/contig_search.h"

#include "kernel/core/cmdline.h"
#include "mm/contig/contig_read.h"
#include "mm/hvo/hvo_take.h"
#include "mm/page/page_alloc.h"
#include "mm/page/page_fast.h"
#include "mm/page/pcp_drain.h"
#include "mm/page/refuge.h"
#include "mm/zone/section_close.h"
#include "mm/zone/transit.h"
#include "mm/zone/watermark.h"

/* ---- by the summary of each GiB ---- */

/*
 * Frames of a GiB that were never opened. *mapped says how many of its sections are open and
 * mapped.
 */
static u32 unopened_frames(const struct mm *mm, u64 gib, unsigned *mapped)
{
	u32 frames = 0;

	*mapped = 0;
	for (u64 section = gib * GIB_SECTIONS; section < (gib + 1) * GIB_SECTIONS; section++) {
		if (section_state(mm, section) == SECTION_UNOPENED)
			frames += SECTION_BLOCKS * BLOCK_FRAMES;
		else
			*mapped += section_style(mm, section) == SECTION_MAPPED;
	}
	return frames;
}

/* Racy by design; isolation finds out exactly. */
const char *contig_judge(const struct contig_scan *scan, u64 number)
{
	const struct mm *mm = scan->zone->mm;
	const struct gib *gib = &mm->gib[number - mm->first_gib];
	unsigned mapped;
	u32 unopened;

	if (!gib->whole)
		return "h: holes, or memory of several nodes";
	unopened = unopened_frames(mm, number, &mapped);
	if (mapped != 0 && mapped + unopened / (SECTION_BLOCKS * BLOCK_FRAMES) != GIB_SECTIONS)
		return "s: struct pages in two styles";
	if (scan->mapped ? mapped == 0 : mapped != 0 && unopened != 0)
		return "s: struct pages not in the style that hvo= and contig= need";
	return atomic_load_relaxed(&gib->free) + atomic_load_relaxed(&gib->movable) + unopened ==
			       order_pages(GIGA_ORDER)
		       ? NULL
		       : "t: memory that is changing hands";
}

/*
 * The key is higher the fewer frames have to move, and among equals for the lower GiB. 0 for a GiB
 * that was tried already, or that has something which can be neither moved nor drained.
 */
static u64 gib_key(const void *ctx, u64 number)
{
	const struct contig_scan *scan = ctx;
	const struct mm *mm = scan->zone->mm;
	const u64 movable = atomic_load_relaxed(&mm->gib[number - mm->first_gib].movable),
		  key = ~(movable << 32 | number);

	if (scan->after && key >= scan->after)
		return 0;
	return contig_judge(scan, number) ? 0 : key;
}

/* Frames to be moved to empty the GiB of block `first`. */
static u64 movable_frames(const struct mm *mm, u32 first)
{
	return atomic_load_relaxed(&gib_of(mm, first)->movable);
}

/* The cheapest GiB after the one tried last. `after` is the key of that one. */
static u32 cheapest_gib(struct contig_scan *scan)
{
	const u64 best = gib_best(scan->zone, gib_key, scan);

	if (best == 0)
		return BLOCK_NONE;
	scan->after = best;
	return (u32)~best * GIB_BLOCKS;
}

/* Is the block, as far as its record says, free or full of pages that may be movable? */
static bool block_may_move(const struct mm *mm, u32 index)
{
	const struct block *block = block_at(mm, index);
	struct block_word head, word;
	u32 at;

	if (!block || section_state(mm, index / SECTION_BLOCKS) != SECTION_OPEN)
		return false;
	at = block_run_head(mm, index, &head);
	word = at == index ? head : block_look(block);
	if (block_word_is_isolated(word))
		return false;
	if (head.flags & BLOCK_FREE)
		return true;
	return !(head.flags & BLOCK_TRANSIT) && head.order <= BLOCK_ORDER &&
	       block_word_type(word) != MIGRATE_UNMOVABLE &&
	       (word.state == BLOCK_FULL || word.state == BLOCK_HUGE);
}

/* Smaller ranges: block records say enough. */
static bool every_block_may_move(struct contig_scan *scan, const struct contig_search *search,
				 u32 first)
{
	for (u32 index = first; index < first + order_blocks(scan->order); index++)
		if (!block_may_move(scan->zone->mm, index))
			return false;
	return true;
}

/*
 * Frames on per-CPU lists are neither free nor movable. Before pages are moved the lists are
 * drained, once, and the cost is computed again: the GiB with the fewest may have some of them.
 */
static u32 next_by_summary(struct contig_scan *scan, const struct contig_search *search)
{
	u32 first;

	if (scan->order < GIGA_ORDER)
		return contig_next_that(scan, search, every_block_may_move);
	first = cheapest_gib(scan);
	if (!scan->drained && (first == BLOCK_NONE || movable_frames(scan->zone->mm, first) > 0)) {
		scan->drained = true;
		scan->after = 0;
		pcp_drain_all(scan->zone->mm);
		first = cheapest_gib(scan);
	}
	return first;
}

enum { SEARCH_INDEX = 5 };

const struct contig_search contig_searches[] = {
	{.name = "vanilla", .reads = true, .counts = true, .next = contig_next_by_reading},
	{.name = "revert",
	 .reads = true,
	 .counts = true,
	 .skips_used = true,
	 .skips_huge = true,
	 .next = contig_next_by_reading},
	{.name = "skip",
	 .reads = true,
	 .counts = true,
	 .skips_same = true,
	 .next = contig_next_by_reading},
	{.name = "strict",
	 .reads = true,
	 .counts = true,
	 .skips_huge = true,
	 .next = contig_next_by_reading},
	{.name = "step", .reads = true, .next = contig_next_by_steps},
	[SEARCH_INDEX] = {.name = "index", .gathers = true, .next = next_by_summary},
	{.name = NULL},
};

unsigned contig_selected = SEARCH_INDEX;
OPTION_ROW(contig, contig_selected, contig_searches, "how contiguous ranges are searched for");

const struct contig_search *contig_search_selected(void)
{
	return &contig_searches[contig_selected];
}

/* ---- 1 GiB pages ---- */

/*
 * A GiB with blocks set aside for movable pages (CMA) may not go to a pool, so it is not worth
 * emptying. block_join() checks again.
 */
static bool has_cma(const struct mm *mm, u32 first)
{
	for (u32 index = first; index < first + GIB_BLOCKS; index++)
		if (block_type(block_at(mm, index)) == MIGRATE_CMA)
			return true;
	return false;
}

/* Returns 0 with one more page in `list`, or -EBUSY or -ENOMEM if this candidate failed. */
static int take_candidate(struct contig_scan *scan, const struct hvo_mode *mode, u32 first,
			  struct block_list *list)
{
	struct refuge refuge = refuge_beside(scan->zone, first / GIB_BLOCKS);
	const struct migrate_how how = {.refuge =
						contig_search_selected()->gathers ? &refuge : NULL};
	struct block_list pieces = BLOCK_LIST_INIT;
	struct mm *mm = scan->zone->mm;
	int err = section_open_range(mm, first, GIB_BLOCKS,
				     scan->mapped ? SECTION_MAPPED : SECTION_ON_DEMAND);

	if (err || has_cma(mm, first))
		return -EBUSY;
	atomic_store_relaxed(&gib_of(mm, first)->refused, 0);
	err = contig_take(scan->zone, first, GIB_BLOCKS, &how, &pieces, scan->stats);
	refuge_end(&refuge);
	if (err)
		return err;
	if (contig_search_selected()->counts)
		scan->stats->counted += contig_count_and_freeze(mm, first, GIB_BLOCKS);
	/* HUGE, or FULL if all sections are mapped; after an error they are still pieces */
	err = contig_unhuge(mm, &pieces) < 0 ? -ENOMEM : hvo_join(scan->zone, mode, first);
	if (err)
		block_list_publish_free(mm, &pieces);
	else
		block_list_push(mm, list, first);
	return err;
}

/* Take a range of single pages. */
static struct page *take_range(struct zone *zone, unsigned order, struct contig_stats *stats)
{
	const struct contig_search *search = contig_search_selected();
	u32 first;

	do {
		struct contig_scan scan = {.zone = zone, .order = order, .stats = stats};

		for (first = search->next(&scan, search); first != BLOCK_NONE;
		     first = search->next(&scan, search))
			if (contig_take_range(zone, first, order_blocks(order), MIGRATE_KEEP_GIGA,
					      stats) == 0)
				return block_page(zone->mm, first);
	} while (section_open_next(zone, zone->mm->style) == 0);
	return NULL;
}

static void add_stats(const struct contig_stats *stats)
{
	atomic_add_relaxed(&contig_totals.scanned, stats->scanned);
	atomic_add_relaxed(&contig_totals.candidates, stats->candidates);
	atomic_add_relaxed(&contig_totals.counted, stats->counted);
	atomic_add_relaxed(&contig_totals.moved.pages, stats->moved.pages);
	atomic_add_relaxed(&contig_totals.moved.pooled, stats->moved.pooled);
	atomic_add_relaxed(&contig_totals.moved.failed, stats->moved.failed);
}

bool contig_gigabyte_is_free(const struct mm *mm)
{
	u64 frames = 0;

	for (const struct zone *zone = mm->zone; zone < mm->zone + mm->zones; zone++)
		frames += saturating_sub(zone_free(zone) + atomic_load_relaxed(&zone->unopened),
					 zone->reserve + zone->lowmem);
	return frames >= order_pages(GIGA_ORDER);
}

u64 contig_take_giga(struct zone *zone, const struct hvo_mode *mode, u64 count,
		     struct block_list *list)
{
	const struct contig_search *search = contig_search_selected();
	struct contig_stats stats = {0};
	struct contig_scan scan = {
		.zone = zone, .order = GIGA_ORDER, .mapped = mode->mapped, .stats = &stats};
	u64 taken = 0, failed = 0, without_room = 0;

	/*
	 * Other CPUs change the cost of a GiB, so one that failed may come up again, but not
	 * forever. If the pages of two GiB found no room elsewhere, those of a third would only
	 * fill what has become free in the first two.
	 */
	while (taken < count && failed < 2 * zone->mm->gibs && without_room < 2) {
		const u64 kept = list->count * order_pages(GIGA_ORDER);
		const u32 first = search->next(&scan, search);
		int err;

		if (first == BLOCK_NONE ||
		    (movable_frames(zone->mm, first) > 0 && !contig_gigabyte_is_free(zone->mm)))
			break;
		/* nobody must wait for the pages kept in `list`, this CPU least of all */
		atomic_fetch_add(&zone->mm->transit_kept, kept);
		err = take_candidate(&scan, mode, first, list);
		atomic_fetch_sub(&zone->mm->transit_kept, kept);
		taken += !err;
		failed = err ? failed + 1 : 0;
		without_room = err == -ENOMEM ? without_room + 1 : 0;
		if (!err) /* each page is searched for from the start, as in Linux */
			scan.after = scan.passed_huge = scan.admits_huge = 0;
	}
	add_stats(&stats);
	return taken;
}

static struct page *take_range_near(struct mm *mm, unsigned order, node_t node)
{
	const struct node *near = &mm->node[page_first_node(mm, node)];
	struct contig_stats stats = {0};
	struct page *page = NULL;

	for (node_t i = 0; i < mm->nodes && !page; i++) {
		for (int kind = ZONE_NORMAL; kind >= 0 && !page; kind--) {
			struct zone *zone = node_zone(node_near(near, i), kind);

			/* a block is allocated afterwards, which a short zone would refuse */
			if (zone && (order > BLOCK_ORDER || zone_admits(zone, order, 0)))
				page = take_range(zone, order, &stats);
		}
	}
	add_stats(&stats);
	return page;
}

/*
 * A compound page of one block. A block that is emptied for it goes to the buddy first, where
 * somebody else may be faster; then another one is emptied.
 */
static struct page *take_block(struct mm *mm, node_t node)
{
	enum { TRIES = 3 };
	struct page *page = mm_page_alloc(mm, BLOCK_ORDER, USE_MOVABLE, 0, node);

	for (unsigned i = 0; i < TRIES && !page; i++) {
		struct page *pages = take_range_near(mm, BLOCK_ORDER, node);

		if (!pages)
			return NULL;
		mm_contig_free_range(mm, page_to_pfn(pages), BLOCK_FRAMES);
		page = mm_page_alloc(mm, BLOCK_ORDER, USE_MOVABLE, 0, node);
	}
	return page;
}

struct page *mm_contig_alloc(struct mm *mm, unsigned order, node_t node)
{
	struct page *page;

	if (order == BLOCK_ORDER)
		return take_block(mm, node);
	if (order < BLOCK_ORDER || order >= GIGA_ORDER)
		return mm_page_alloc(mm, order, USE_MOVABLE, 0, node);
	page = take_range_near(mm, order, node);
	if (!page) {
		sections_give_back(mm, mm->style);
		page = take_range_near(mm, order, node);
	}
	return page;
}
