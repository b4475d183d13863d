/*
 * Entries of a space, with the rights of a program and of the kernel in one form (enum
 * user_rights). The kernel has no entry that is present and refuses reads: a page that it may not
 * access has a hidden entry, which is not present and has the frame.
 */
#pragma once

#include <arch/pgtable.h>

#include "mm/vm/space.h"

static inline bool entry_is_hidden(pte_t pte)
{
	return !pte_present(pte) && pte_pfn(pte) != 0;
}

/* Does the entry stand for a page, accessible or not? */
static inline bool entry_is_leaf(pte_t pte, enum pt_level level)
{
	return pte_is_leaf(pte, level) || entry_is_hidden(pte);
}

static inline pte_t entry_make(const struct space *space, pfn_t pfn, enum pt_level level,
			       unsigned rights)
{
	if (space->user)
		return pte_make_user(pfn, level, rights);
	if (rights == 0)
		return pfn << PAGE_SHIFT | (level == PT_PAGE ? 0 : PTE_LARGE);
	return pte_make(pfn, level, rights & USER_RIGHT_WRITE ? PT_RW : PT_RO);
}

static inline pte_t entry_make_table(const struct space *space, pfn_t pfn)
{
	return space->user ? pte_make_table_user(pfn) : pte_make_table(pfn);
}

static inline unsigned entry_rights(const struct space *space, pte_t pte)
{
	if (space->user)
		return pte_rights(pte);
	return !pte_present(pte)   ? 0
	       : pte_writable(pte) ? USER_RIGHT_READ | USER_RIGHT_WRITE
				   : USER_RIGHT_READ;
}
