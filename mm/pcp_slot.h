/* What the files of the per-CPU lists share: see pcp.h. All: entered, on the owner's CPU. */
#pragma once

#include "mm/pcp.h"

/* Does the slot hold nothing? Forgets words that were emptied. */
bool pcp_slot_is_empty(struct pcp_zone *mine, u32 slot);

/* It is empty: nobody looks here for a page. */
void pcp_slot_unuse(struct pcp_zone *mine, u32 slot);

/* All frames of a slot go back to the zone. Takes zone->lock. */
void pcp_evict(struct zone *zone, struct pcp_zone *mine, u32 slot);

/* The first `count` huge entries, the coldest, go back. Caller holds zone->lock. */
void pcp_huge_evict(struct zone *zone, struct pcp_zone *mine, u32 count);

/*
 * Where lists work page by page (mm->pcp_types->by_page, pcp_types.c): pages were freed to a slot, or fetched; they are about to be given back; are
 * given back, which returns how many. The last with zone->lock held.
 */
void pcp_note_freed(struct zone *zone, struct pcp_zone *mine, struct page *page, unsigned order, u8 type);
void pcp_note_fetched(struct zone *zone, struct pcp_zone *mine, u32 index, const u64 map[PCP_WORDS], u8 type);
void pcp_prefetch_slot(struct zone *zone, const struct pcp_zone *mine, u32 slot);
u64 pcp_free_by_page(struct zone *zone, struct pcp_zone *mine, u32 slot);

/* How many frames this CPU may hold now: 0 while lists are disabled. */
s64 pcp_high(struct zone *zone, struct pcp_zone *mine);
