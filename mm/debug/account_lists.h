/*
 * The walk over a zone's free lists, of blocks and of small chunks, over its isolations, and over
 * the pools. Returns true if the counters agree; prints each difference.
 */
#pragma once

#include "mm/debug/account.h"

struct zone;

bool account_lists(struct zone *zone);
bool account_isolations(struct zone *zone);
bool account_pools(struct mm *mm);

/* Counters that are nonzero only while an operation is in progress. */
bool account_idle(const struct mm *mm);
