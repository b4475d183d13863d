/*
 * The walk over memory in use: struct pages, and the entries and promises of huge mappings. Returns
 * true if all is right; prints what is not.
 */
#pragma once

#include "mm/debug/account.h"

bool account_refs(struct mm *mm);

/*
 * Checks beyond what mm_account() may ask for while a program runs. account_unshared(): each page
 * in use has one reference, as when nobody shares pages. account_callers(): its struct page names
 * the function that took it, as debug.page_owner=on records it from the first page on. Both print
 * each page that fails. Other CPUs parked or idle.
 */
bool account_unshared(struct mm *mm);
bool account_callers(struct mm *mm);
