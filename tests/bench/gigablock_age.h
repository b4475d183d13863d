/* Memory aged by a trace of requests, for the gigablock benchmark: see gigablock_age.c. */
#pragma once

#include "kernel/lib/types.h"

struct age_stats {
	u64 requests; /* calls that asked for memory */
	u64 failed;   /* those that got none */
};

/*
 * Fill memory as the trace begins with it. False if the tables of the trace found no memory. The
 * pages stay until age_end().
 */
bool age_begin(u64 first_seed, struct age_stats *stats);

/* Go on with the trace, of `ops` operations in all, until `until` of them are done. */
void age_go_on(u64 until, u64 ops, struct age_stats *stats);

/* Free the pool and a random share of the page cache, in percent. */
void age_release(u64 percent);

/* Frames that movers have moved since age_begin(). */
u64 age_moved(void);

/* Is every page where the trace's tables say, with the word that was written to it? */
bool age_verify(void);

void age_end(void);
