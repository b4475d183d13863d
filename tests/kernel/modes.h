/* The rows of hvo= and contig= by their names, for cases that try several. */
#pragma once

#include "kernel/core/cmdline.h"
#include "kernel/lib/string.h"
#include "mm/contig/contig_search.h"
#include "tests/kernel/row.h"

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

/*
 * Check with each value of hvo=, each time in an arena of so many bytes; with 0 there is none. The
 * option is put back at once, because there are more modes than options that a case may set.
 */
static inline void hvo_in_each_mode(u64 bytes,
				    void (*check)(struct arena *a, const struct hvo_mode *mode))
{
	for (const struct hvo_mode *mode = hvo_modes; mode->name && !test_failed(); mode++) {
		struct arena *a = bytes ? arena_borrow(bytes) : NULL;
		struct option_saved saved;

		if (bytes && !a)
			return;
		EXPECT_EQ(option_set_for_now(option_find("hvo"), mode->name, &saved), 0);
		check(a, mode);
		option_put_back(&saved, 1);
		row_passed("hvo=%s", mode->name);
		if (a)
			arena_return(a);
	}
}
