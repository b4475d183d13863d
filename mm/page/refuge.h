/*
 * A refuge: a GiB that is to stay as it is, where single pages go that stand in the way of 1 GiB
 * pages.
 *
 *   GiB 3 [. x . x]  --+
 *   GiB 4 [x . . .]  --+-->  GiB 9 [x x x x x . . .]      instead of wherever the allocator has
 *                                                         room: in GiB that are wanted next,
 *   GiB 5 [. . x .]  --+                                  where they would be moved again, and
 *                                                         again
 *
 * The refuge is chosen by the summaries (struct gib). A GiB with metadata memory comes first,
 * because nobody can empty it; after that the GiB that costs most to empty, which would be tried
 * last. When the refuge is full, the next one in that order follows.
 */
#pragma once

#include "mm/page/pcp.h"

struct refuge {
	struct zone *zone;
	u64 avoid;     /* number of the GiB that is being emptied */
	u64 before;    /* rank and number of the GiB chosen last; ~0: none yet */
	u32 next, end; /* its blocks still to be looked at; end 0: none */
	u32 index;     /* the block last taken from, and which of its frames are left to give */
	unsigned word; /* before this word there are none */
	u64 map[PCP_WORDS];
};

static inline struct refuge refuge_beside(struct zone *zone, u64 gib)
{
	return (struct refuge){.zone = zone, .avoid = gib, .before = ~0ULL};
}

/*
 * Take a single page, refcount 1, as from mm_page_alloc(). NULL if no refuge has any. No lock held;
 * may grow metadata memory.
 */
struct page *refuge_take(struct refuge *refuge);

/* Free what was taken of the last block and is left. No lock held. */
void refuge_end(struct refuge *refuge);
