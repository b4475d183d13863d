/*
 * Contiguous memory at run time: ranges that are emptied, and the search for one worth emptying.
 *
 *   search --candidate--> isolate -> drain -> move what is in use -> take -> end isolation        next candidate on failure
 *
 *   vanilla  before S4: every struct page of a range is read, huge pages too; a range with a 1 GiB page is found out only after
 *            moving fails, after isolating and draining
 *   revert   S4's reference, the check as it was before vanilla: any page in use ends the look at a range, any huge page does
 *   skip     S4: a huge page at least as large as the request ends it, whether its head or a tail is met; smaller ones are
 *            moved. CMA is exempt
 *   strict   the simpler fix that S4 mentions: any huge page ends it; fails where moving 2 MiB pages would have made room
 *   step     Linux 7.0: steps over free runs, chunks and compound pages by their size; ends at what cannot be moved; ranges
 *            with a huge page are passed over first, and those with smaller ones than the request taken if there are no others
 *   index    ours: each GiB keeps a count of its free and movable frames (struct gib), so the cheapest one is known without
 *            reading any struct page; an order-18 run of the buddy needs no search at all. What is moved gathers in the GiB that
 *            is wanted last (refuge.h), so that no page is moved twice
 *
 * All but ours read struct pages as Linux does (contig_read.c): they look at mapped sections only, and are meant for max_order=10,
 * where the buddy has no run that large. Those before 7.0 also gave each page of a range a reference and took it back before
 * the 1 GiB page was formed. All are alike in what else they do with a candidate.
 *
 * Source: Gorman, "mm: page_alloc: Assume huge tail pages are valid when allocating contiguous pages", 2023-04.
 */
#pragma once

#include "mm/hvo.h"
#include "mm/migrate.h"

struct contig_stats {
	u64 scanned;    /* struct pages read in search of a range */
	u64 candidates; /* ranges tried */
	u64 counted;    /* struct pages that got a reference and lost it */
	struct migrate_stats moved;
};

/* A search under way. */
struct contig_scan {
	struct zone *zone;
	unsigned order; /* 9..18 */
	bool mapped;    /* wanted: sections of that style only; else index takes either, but not both in one range */
	u64 after;      /* where it stands: its own business; starts at 0 */
	bool drained;
	bool passed_huge, admits_huge; /* step: a range was passed over for a huge page in it; such ranges are wanted now */
	struct contig_stats *stats;
};

struct contig_search {
	const char *name;
	bool reads; /* struct pages: needs sections that are mapped, and finds nothing in others */
	bool skips_same, skips_huge; /* huge pages of the request's size and more; any */
	bool skips_used;            /* pages with references */
	bool counts;                /* each struct page of a 1 GiB page gets a reference, and loses it, before it is formed */
	bool gathers;               /* single pages in the way of 1 GiB pages go where they stay: refuge.h */
	u32 (*next)(struct contig_scan *scan, const struct contig_search *search); /* first block of a range, or BLOCK_NONE */
};

extern const struct contig_search contig_searches[]; /* in the order above; ends with a NULL name */

/* Those that read struct pages (contig_read.c). Take zone->lock. */
u32 contig_next_by_reading(struct contig_scan *scan, const struct contig_search *search);
u32 contig_next_by_steps(struct contig_scan *scan, const struct contig_search *search);

/*
 * A reference for each struct page of full blocks that are the caller's, in transit; then it is taken back, as Linux did before
 * 7.0. Returns how many.
 */
u64 contig_count_and_freeze(struct mm *mm, u32 first, u32 count);

/* The one chosen with contig=, index by default. set: for benchmarks and tests; returns what it was. */
const struct contig_search *contig_search_selected(void);
const struct contig_search *contig_search_select(const struct contig_search *search);
const struct contig_search *contig_search_find(const char *name);

/* Totals of all searches of this machine since start, read while nobody searches. */
extern struct contig_stats contig_totals;

/*
 * Empty [first, first + count) of one zone, open, and take it: runs in transit at the end of `list`, in ascending order, as 2 MiB pieces in
 * whatever state they were free in, and whole 1 GiB pages. 0; -EBUSY, -ENOMEM: nothing is taken and nothing stays isolated;
 * what was moved stays moved. No lock held.
 */
int contig_take(struct zone *zone, u32 first, u32 count, const struct migrate_how *how, struct block_list *list,
		struct contig_stats *stats);

/* The same as single pages, one reference each: 0, -EBUSY, -ENOMEM. */
int contig_take_range(struct zone *zone, u32 first, u32 count, enum migrate_giga giga, struct contig_stats *stats);

/* Pieces that are huge are so no more: BARE, or FULL in mapped sections. 0 or -ENOMEM: some of a mapped section still are. */
int contig_unhuge(struct mm *mm, struct block_list *list);

/*
 * Pieces that contig_take() brought have their struct pages, all of them, each an order-9 piece in transit. 0 or -ENOMEM; then they are as
 * far as they came and still the caller's.
 */
int contig_make_full(struct zone *zone, struct block_list *list);

/*
 * Up to `count` 1 GiB pages found by the selected search, for hvo_optimise() by the same mode, in transit: HUGE already, or FULL where the
 * mode or the sections have it so (then a head is reserved if the mode wants one). Returns how many.
 */
u64 contig_take_giga(struct zone *zone, const struct hvo_mode *mode, u64 count, struct block_list *list);

/* The calls of mm.h for any machine. */
int mm_contig_alloc_range(struct mm *mm, pfn_t first, u64 frames);
void mm_contig_free_range(struct mm *mm, pfn_t first, u64 frames);
struct page *mm_contig_alloc(struct mm *mm, unsigned order, node_t node);
int mm_contig_declare_cma(struct mm *mm, pfn_t first, u64 frames);
