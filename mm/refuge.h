/*
 * A refuge: the GiB that is to stay, where single pages go that stand in the way of 1 GiB pages.
 *
 *   GiB 3 [. x . x]  --+
 *   GiB 4 [x . . .]  --+-->  GiB 9 [x x x x x . . .]      instead of wherever the allocator has room: in GiB that are wanted next,
 *   GiB 5 [. . x .]  --+                                  where they would be moved again, and again
 *
 * Chosen by the summaries (struct gib): first a GiB with META, which nobody can empty; else the dearest to empty, which is tried last.
 * When it is full, the next in that order.
 */
#pragma once

#include "mm/zone.h"

struct refuge {
	struct zone *zone;
	u64 avoid;  /* number of the GiB that is being emptied */
	u64 before; /* rank and number of the one chosen last; ~0: none yet */
	pfn_t at, end; /* what is left to look at of it; end 0: none */
};

static inline struct refuge refuge_beside(struct zone *zone, u64 gib)
{
	return (struct refuge){.zone = zone, .avoid = gib, .before = ~0ULL};
}

/* A single page, refcount 1, as from mm_page_alloc(); NULL if no refuge has any. No lock held; may grow META. */
struct page *refuge_take(struct refuge *refuge);
