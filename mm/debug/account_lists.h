/*
 * The walk over a zone's free lists, of blocks and of small chunks, and over its isolations.
 * Returns true if the counters agree; prints each difference.
 */
#pragma once

#include "mm/debug/account.h"

struct zone;

/* Compare two counts of `what`, in frames, and print a difference. True if they are equal. */
bool account_agree(const char *what, const struct zone *zone, u64 counted, u64 walked);

bool account_lists(struct zone *zone);
bool account_isolations(struct zone *zone);
