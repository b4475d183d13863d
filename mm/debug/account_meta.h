/*
 * The walk over metadata memory, by its maps and by the users of its frames. Returns true if both
 * agree with the counters; prints each difference.
 */
#pragma once

#include "mm/debug/account.h"

bool account_meta(struct mm *mm);
