/* The selected search for a range, and the 1 GiB pages that it finds. */
#pragma once

#include "mm/contig/contig.h"

/* The search chosen with contig=, index by default, and its place in contig_searches[]. */
extern unsigned contig_selected;
const struct contig_search *contig_search_selected(void);

/*
 * Find up to `count` 1 GiB pages with the selected search, for hvo_optimise() in the same mode.
 * They are in transit and already HUGE, or FULL where the mode or the sections require it; for a
 * FULL page a head is reserved if the mode wants one. Returns how many were found.
 */
u64 contig_take_giga(struct zone *zone, const struct hvo_mode *mode, u64 count,
		     struct block_list *list);

/*
 * Why the search for 1 GiB pages leaves out a GiB, by the counts of the moment: a text as in struct
 * contig_why. NULL: the search tries to empty the GiB.
 */
const char *contig_judge(const struct contig_scan *scan, u64 number);

/*
 * The pages of a GiB must find room in memory that is free elsewhere and not kept in reserve.
 * Together with the free frames of the GiB itself that is 1 GiB, whichever GiB it is.
 */
bool contig_gigabyte_is_free(const struct mm *mm);
