/*
 * How the migratetype of a page on a per-CPU list is known: the baselines of pcp.type_cache=, which
 * look it up page by page, and the calls in which they differ.
 */
#pragma once

#include "mm/page/pcp.h"

/* The row chosen with pcp.type_cache=, off by default. */
const struct pcp_types *pcp_types_selected(void);

/*
 * Change the row; all lists are emptied first. Returns the previous one. No lock held, not entered;
 * one caller at a time.
 */
const struct pcp_types *pcp_set_types(struct mm *mm, const struct pcp_types *types);

/*
 * The calls of lists that work page by page (mm->pcp_types->by_page, pcp_types.c).
 * pcp_note_freed(): pages were freed to a slot. pcp_note_fetched(): pages were fetched.
 * pcp_prefetch_slot(): the pages of a slot are about to be given back. pcp_free_by_page(): give
 * them back, zone->lock held; returns how many.
 */
void pcp_note_freed(struct zone *zone, struct pcp_zone *mine, struct page *page, unsigned order,
		    u8 type);
void pcp_note_fetched(struct zone *zone, struct pcp_zone *mine, u32 index, const u64 map[PCP_WORDS],
		      u8 type);
void pcp_prefetch_slot(struct zone *zone, const struct pcp_zone *mine, u32 slot);
u64 pcp_free_by_page(struct zone *zone, struct pcp_zone *mine, u32 slot);
