/*
 * The walk over metadata memory, by its maps and by the users of its frames. Each difference from
 * the counters is a fault of the account.
 */
#pragma once

#include "mm/debug/account.h"

void account_meta(struct mm *mm);
