/* The rows of hvo= and contig= by their names, for cases that try several. */
#pragma once

#include "kernel/lib/string.h"
#include "mm/contig/contig_search.h"
#include "mm/hvo/hvo.h"

/* NULL if there is no such row. */
static inline const struct hvo_mode *hvo_mode_find(const char *name)
{
	for (const struct hvo_mode *mode = hvo_modes; mode->name; mode++)
		if (strcmp(mode->name, name) == 0)
			return mode;
	return NULL;
}

static inline const struct contig_search *contig_search_find(const char *name)
{
	for (const struct contig_search *search = contig_searches; search->name; search++)
		if (strcmp(search->name, name) == 0)
			return search;
	return NULL;
}

/* Returns the search that was selected before. */
static inline const struct contig_search *contig_search_select(const struct contig_search *search)
{
	const struct contig_search *was = contig_search_selected();

	contig_selected = (unsigned)(search - contig_searches);
	return was;
}
