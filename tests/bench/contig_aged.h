/* Memory aged by scattered movable pages, for the contig benchmark; see contig_aged.c. */
#pragma once

#include "kernel/lib/types.h"

/* Age all memory. Returns how many single pages stay in use, 0 if memory could not be aged. */
u64 aged_begin(void);

/*
 * Picoseconds for copying one frame in aged memory, from a page that stays to a free one, and
 * nothing else. It is the median of several rounds over different pages. 0 if nothing stays.
 */
u64 aged_copy_ps(void);

/* Does every page that stays still have the contents that were written to it? */
bool aged_verify(void);

/* Free the pages that stay. */
void aged_end(void);
