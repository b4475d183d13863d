/*
 * Entries of huge mappings: what they say beside the page.
 *
 *   absent    0, or rights for the page to come
 *   leaf      a page, present
 *   hidden    a page that may not be accessed: not present, with the frame
 *   table     smaller entries, each on its own
 *   split     a table of one page's pieces: some of the page has other rights than the rest
 *
 * An entry may record rights of its own (huge_protect_range()); without them those of the mapping
 * count. Records outlive the page: they stay in the absent entry when the page is released.
 *
 * A split entry is claimed like a leaf, and whoever has claimed it owns the table below, with all
 * pieces and tables of pieces. All pieces are there or none. The first piece stands for the page;
 * the others have PTE_PIECE, so that the page is found once.
 *
 * A large page comes zero, and its entry is made clean and marked ENTRY_AS_BROUGHT. If it is still
 * clean when the page is taken away, nobody wrote to the page: the entry is the only way to it that
 * a user has. Any change of rights makes the entry anew, without the mark.
 */
#pragma once

#include <arch/pgtable.h>

#include "mm/mapping/huge_map.h"

/* Bits that the processor ignores, present or not: 0, or 1 + enum huge_access. */
#define ENTRY_ACCESS_SHIFT 52
#define ENTRY_ACCESS       (3ULL << ENTRY_ACCESS_SHIFT)

#define ENTRY_AS_BROUGHT (1ULL << 54)

static inline pte_t entry_recorded(enum huge_access access)
{
	return (u64)(access + 1) << ENTRY_ACCESS_SHIFT;
}

/* The rights of an entry that is no table. */
static inline enum huge_access entry_access(const struct huge_map *map, pte_t pte)
{
	const unsigned own = (pte & ENTRY_ACCESS) >> ENTRY_ACCESS_SHIFT;

	if (own)
		return (enum huge_access)(own - 1);
	return atomic_load_relaxed(&map->read_only) ? HUGE_READ_ONLY : HUGE_READ_WRITE;
}

static inline bool entry_is_split(pte_t pte, enum pt_level level)
{
	return pte_present(pte) && !pte_is_leaf(pte, level) && (pte & PTE_PIECE);
}

static inline bool entry_is_table(pte_t pte, enum pt_level level)
{
	return pte_present(pte) && !pte_is_leaf(pte, level) && !(pte & PTE_PIECE);
}

static inline bool entry_is_hidden(pte_t pte)
{
	return !pte_present(pte) && pte_pfn(pte) != 0;
}

static inline bool entry_has_page(pte_t pte, enum pt_level level)
{
	return pte_is_leaf(pte, level) || entry_is_hidden(pte);
}

/* An entry for a page or a piece with these rights; `bits` are of ENTRY_ACCESS and PTE_PIECE. */
static inline pte_t entry_make(pfn_t pfn, enum pt_level level, enum huge_access access, pte_t bits)
{
	bits &= ENTRY_ACCESS | PTE_PIECE;
	if (access == HUGE_NONE)
		return pfn << PAGE_SHIFT | bits;
	return pte_make(pfn, level, access == HUGE_READ_ONLY ? PT_RO : PT_RW) | bits;
}

/*
 * The entry for a page that was brought zero. Small pages have the dirty bit set in advance,
 * because nothing keeps the knowledge that one of them is zero.
 */
static inline pte_t entry_as_brought(pte_t pte, enum pt_level level)
{
	return pte_notes_writes() && level > PT_PAGE ? pte_make_clean(pte) | ENTRY_AS_BROUGHT : pte;
}

/* Is the page still zero? `pte` is what the entry was when it ceased to be present. */
static inline bool entry_was_never_written(pte_t pte)
{
	return (pte & ENTRY_AS_BROUGHT) && !pte_dirty(pte);
}

/* The entry that stands for the page of a split entry: its first piece. */
static inline pte_t *entry_first_piece(pte_t *entry, enum pt_level level)
{
	for (; entry_is_split(pte_load(entry), level); level--)
		entry = pte_table(pte_load(entry));
	return entry;
}
