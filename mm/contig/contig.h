/*
 * Contiguous memory at run time: ranges that are emptied, and the search for one worth emptying.
 *
 *   search --candidate--> isolate -> drain -> move what is in use -> take -> end isolation
 *             (on failure: the next candidate)
 *
 *   vanilla  before the contiguous-range series (Gorman 2023): every struct page of a range is
 *            read, those of huge pages too; a range with a 1 GiB page is found out only when moving
 *            fails, after isolating and draining
 *   revert   the reference of that series, the check as it was before vanilla: any page in use ends
 *            the look at a range, and so does any huge page
 *   skip     that series: a huge page at least as large as the request ends the look, whether its
 *            head or a tail is met; smaller ones are moved. CMA is exempt
 *   strict   the simpler fix that the series mentions: any huge page ends the look; fails where
 *            moving 2 MiB pages would have made room
 *   step     Linux 7.0: steps over free runs, chunks and compound pages by their size; ends at a
 *            page that cannot be moved or a block of CMA. Ranges with a huge page are passed over
 *            first; those whose huge pages are all smaller than the request are taken if there are
 *            no other ranges
 *   index    ours: each GiB keeps a count of its free and movable frames (struct gib), so the
 *            cheapest one is known without reading any struct page; an order-18 run of the buddy
 *            needs no search at all. Pages that are moved gather in the GiB that is wanted last
 *            (refuge.h), so that no page is moved twice
 *
 * All but ours read struct pages as Linux does (contig_read.c). They look at mapped sections only,
 * and are meant for max_order=10, where the buddy has no run that large. Those before 7.0 also gave
 * each page of a range a reference and took it back before the 1 GiB page was formed. Apart from
 * that, all treat a candidate alike.
 *
 * Source: Gorman, "mm: page_alloc: Assume huge tail pages are valid when allocating contiguous
 * pages", 2023-04.
 */
#pragma once

#include "mm/hvo/hvo.h"
#include "mm/page/migrate.h"

struct contig_stats {
	u64 scanned;    /* struct pages read in search of a range */
	u64 candidates; /* ranges tried */
	u64 counted;    /* struct pages that were given a reference and lost it again */
	struct migrate_stats moved;
};

/* A search in progress. */
struct contig_scan {
	struct zone *zone;
	unsigned order; /* 9..18 */
	/*
	 * true: sections of that style only. false: index takes either style, but not both in one
	 * range
	 */
	bool mapped;
	u64 after; /* position of the search, in a form of its own; starts at 0 */
	bool drained;
	/*
	 * step: passed_huge: a range was passed over because of a huge page in it. admits_huge:
	 * such ranges are now admitted
	 */
	bool passed_huge, admits_huge;
	struct contig_stats *stats;
};

struct contig_search {
	const char *name;
	bool reads; /* reads struct pages, so it finds nothing but in mapped sections */
	bool skips_same, skips_huge; /* huge pages of the request's size and more; any huge page */
	bool skips_used;             /* pages with references */
	/* each struct page of a 1 GiB page gets a reference, and loses it, before it is formed */
	bool counts;
	/* single pages in the way of 1 GiB pages are gathered where they can stay: refuge.h */
	bool gathers;
	/* returns the first block of a range, or BLOCK_NONE */
	u32 (*next)(struct contig_scan *scan, const struct contig_search *search);
};

extern const struct contig_search contig_searches[]; /* in the order above; ends with a NULL name */

/* Totals of all searches of this machine since the start. Read them while nobody searches. */
extern struct contig_stats contig_totals;

/*
 * Empty [first, first + count), which lies in one zone and is open, and take it. The result is
 * appended to `list`: runs in transit, in ascending order, as 2 MiB pieces in whatever state they
 * were free in, and whole 1 GiB pages. Returns 0, or -EBUSY or -ENOMEM; then nothing is taken and
 * nothing stays isolated, but pages already moved stay moved. No lock held.
 */
int contig_take(struct zone *zone, u32 first, u32 count, const struct migrate_how *how,
		struct block_list *list, struct contig_stats *stats);

/*
 * Empty and take [first, first + count) as contig_take() does, as single pages with one reference
 * each. Returns 0, -EBUSY or -ENOMEM.
 */
int contig_take_range(struct zone *zone, u32 first, u32 count, enum migrate_giga giga,
		      struct contig_stats *stats);

/*
 * Make pieces that are huge BARE, or FULL in mapped sections. Returns 0, or -ENOMEM if some pieces
 * of a mapped section are still huge.
 */
int contig_unhuge(struct mm *mm, struct block_list *list);

/* The calls of mm.h for any struct mm. */
int mm_contig_alloc_range(struct mm *mm, pfn_t first, u64 frames);
void mm_contig_free_range(struct mm *mm, pfn_t first, u64 frames);
struct page *mm_contig_alloc(struct mm *mm, unsigned order, node_t node);
int mm_contig_declare_cma(struct mm *mm, pfn_t first, u64 frames);
