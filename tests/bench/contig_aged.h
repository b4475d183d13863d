/* Memory aged by scattered movable pages, for the contig benchmark: see contig_aged.c. */
#pragma once

#include "kernel/types.h"

/* Age all memory. Returns how many single pages stay in use, 0 if it could not be done. */
u64 aged_begin(void);

/*
 * Picoseconds for copying one frame of memory that is aged, from a page that stays to one that is free, with nothing else done: the median of
 * some rounds over different pages. 0 if nothing stays.
 */
u64 aged_copy_ps(void);

/* Is every one of them what was written to it? */
bool aged_verify(void);

/* Give them back. */
void aged_end(void);
