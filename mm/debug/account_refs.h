/*
 * The walk over memory in use: struct pages, and the entries and promises of huge mappings. Each
 * page or entry that is wrong is a fault of the account.
 */
#pragma once

#include "mm/debug/account.h"

void account_refs(struct mm *mm);

/*
 * Check each page in use by itself: if it is movable it has a mover; with CHECK_CALLER its struct
 * page names the function that took it, as debug.page_owner=on records it from the first page on;
 * with CHECK_UNSHARED it has one reference, as when nobody shares pages. True if all is right.
 * Other CPUs parked or idle.
 */
enum account_check { CHECK_CALLER = 1 << 0, CHECK_UNSHARED = 1 << 1 };
bool account_pages(struct mm *mm, unsigned checks);
