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

/* How many frames this CPU may hold now: 0 while lists are disabled. */
s64 pcp_high(struct zone *zone, struct pcp_zone *mine);
