/* For commands that search for contiguous memory: what the search did, and why it found no more. */
#pragma once

#include "kernel/core/shootdown.h"
#include "mm/contig/contig.h"

struct search_seen {
	struct contig_stats stats;
	u64 meta, ns; /* frames that metadata memory uses; the time */
	struct shootdown_stats rounds;
};

/* Counts as they are now, and what changed since. Other CPUs' work is counted with it. */
struct search_seen search_begin(void);
void search_print(const struct search_seen *before);

/*
 * After a search for 1 GiB pages that found too few: print the GiB (of `node`; NODE_NONE: of any)
 * that cannot become pages now, and what stands in the way in each.
 */
void search_explain(node_t node);
