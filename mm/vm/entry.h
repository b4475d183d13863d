/*
 * Entries and tables of a space, for the rest of mm/vm. Rights of a program and of the kernel have
 * one form (enum user_rights). The kernel has no entry that is present and refuses reads: a page
 * that it may not access has a hidden entry, which is not present and has the frame.
 */
#pragma once

#include <arch/pgtable.h>

#include "mm/vm/space.h"

static inline bool entry_is_hidden(pte_t pte)
{
	return !pte_present(pte) && pte_pfn(pte) != 0;
}

/*
 * A guard: no page is there and none may come. This entry of 4 KiB is not present and has no frame.
 */
#define ENTRY_GUARD PTE_FILE

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

/*
 * The entry where the tables for `addr` end, not below level `want`; *level receives its level. The
 * caller holds a pin or the busy range.
 */
static inline pte_t *entry_walk(const struct space *space, u64 addr, enum pt_level want,
				enum pt_level *level)
{
	pte_t *entry = &space->root[pt_index(addr, PT_PGD)];
	enum pt_level at = PT_PGD;

#pragma GCC unroll 3
	for (; at > want; at--) {
		const pte_t pte = pte_load(entry);

		if (!pte_is_table(pte))
			break;
		entry = &pte_table(pte)[pt_index(addr, at - 1)];
	}
	*level = at;
	return entry;
}

/* Waits for a page that another CPU was bringing, and upper tables of the kernel; atomic. */
extern u64 entries_waited, entry_tables_kept;

pte_t entry_wait_unclaimed(const pte_t *entry);

/* The entry once no other CPU claims it. */
static inline pte_t entry_unclaimed(const pte_t *entry)
{
	const pte_t pte = pte_load(entry);

	return unlikely(pte_claimed(pte)) ? entry_wait_unclaimed(entry) : pte;
}

/* Fill an entry that was absent, unless another CPU is first. */
static inline bool entry_put(pte_t *entry, u64 virt, enum pt_level level, pte_t pte)
{
	if (!pte_claim(entry, 0))
		return false;
	pte_store(entry, virt, level, pte);
	return true;
}

/* A frame for a table, or NULL. */
struct page *entry_table_frame(unsigned request);

/*
 * Put a table below an entry of `level` for `addr` that was absent, unless another CPU does. False:
 * no memory.
 */
bool entry_bring_table(const struct space *space, pte_t *entry, u64 addr, enum pt_level level);
