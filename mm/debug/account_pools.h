/*
 * The walk over the pools, their nodes and free lists. Returns true if the counters agree; prints
 * each difference.
 */
#pragma once

#include "mm/debug/account.h"

/* Like account_agree(), for counts that belong to no zone. */
bool account_said(const char *what, u64 counted, u64 walked);

bool account_pools(struct mm *mm, const struct pool *const pools[]);

/* Counters that are nonzero only while an operation is in progress. */
bool account_idle(const struct mm *mm);
