/* Why a GiB cannot become a page now: the verdict of the search, and the frame behind it. */
#pragma once

#include "mm/memmap/zone.h"

struct contig_why {
	node_t node; /* that of its first RAM; NODE_NONE: it has no RAM, and nothing else is said */
	const char *text; /* "LETTER: what stands in the way", or NULL: the GiB can be emptied */
	pfn_t frame;      /* the first frame that does, or PFN_NONE if none can be named */
	u32 movable;      /* frames that must move first */
};

/*
 * Judge a GiB as a search for 1 GiB pages does now (contig_judge()), and each block of it as its
 * isolation does (isolate_obstacle()), without trying. Other CPUs work on meanwhile. Reads struct
 * pages; takes zone->lock for a block at a time, as isolation does. No lock held.
 */
struct contig_why contig_why(struct mm *mm, u64 number);
