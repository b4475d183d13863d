/*
 * The per-CPU list of order 9: a few HUGE blocks with formed heads and shared tails. The inline
 * parts for the fast paths are in pcp.h.
 */
#pragma once

#include "mm/page/pcp.h"

/*
 * Take a HUGE block of order 9 from this CPU's list or, if the zone has `admitted` the request,
 * from the zone. Its head is in the state in which free lists keep it. BLOCK_NONE if there is none,
 * or if the caller may not wait and no block's round is done. Not entered.
 */
u32 pcp_alloc_huge(struct zone *zone, bool admitted, bool may_wait);

/* Give back the first `count` huge entries, which are the coldest. Caller holds zone->lock. */
void pcp_huge_evict(struct zone *zone, struct pcp_zone *mine, u32 count);
