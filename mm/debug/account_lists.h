/*
 * The walk over a zone's free lists, of blocks and of small chunks, over its isolations, and over
 * the pools. Each difference from the counters is a fault of the account.
 */
#pragma once

#include "mm/debug/account.h"

struct zone;
struct pool;

void account_lists(struct zone *zone);
void account_isolations(struct zone *zone);
void account_pools(struct mm *mm);

/* One pool by itself, which no other CPU may use meanwhile. True if all is right. */
bool account_pool(const struct pool *pool);

/* Counters that are nonzero only while an operation is in progress. */
void account_idle(const struct mm *mm);
