/*
 * Searches that read struct pages, as Linux does; the search by the summary of each GiB does not.
 */
#pragma once

#include "mm/contig/contig.h"

/*
 * Try every range of the request's size and alignment, from where the scan stands. Returns the
 * first block of the next that suits, or BLOCK_NONE.
 */
typedef bool contig_suits_fn(struct contig_scan *scan, const struct contig_search *search,
			     u32 first);
u32 contig_next_that(struct contig_scan *scan, const struct contig_search *search,
		     contig_suits_fn *suits);

/* The searches that read struct pages. They take zone->lock. */
u32 contig_next_by_reading(struct contig_scan *scan, const struct contig_search *search);
u32 contig_next_by_steps(struct contig_scan *scan, const struct contig_search *search);

/*
 * Give each struct page of the full blocks in a range a reference and take it back, as Linux did
 * before 7.0. The blocks are the caller's, in transit. Returns how many references there were.
 */
u64 contig_count_and_freeze(struct mm *mm, u32 first, u32 count);
