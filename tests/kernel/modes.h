/* The rows of hvo= and contig= by their names, for cases that try several. */
#pragma once

#include "kernel/lib/string.h"
#include "mm/contig/contig_search.h"
#include "mm/hvo/hvo.h"
#include "mm/zone/section_close.h"

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

/* Close every section that can be closed; returns how many. */
static inline u64 sections_close_all(struct mm *mm)
{
	return sections_give_back(mm, SECTIONS_KEEP_NONE);
}
