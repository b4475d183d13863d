/*
 * Per-CPU lists, order 9: a few HUGE blocks by number, heads formed, tails shared. See pcp.h.
 *
 * An entry is found through its block record, 32 bytes; its struct page is touched when it is given out, not before, and
 * those of a whole batch are fetched together. Entries keep the generation in their record: a block may be listed while
 * a round for its former tails is still due, and is given out when it is done.
 */
#include "kernel/shootdown.h"
#include "mm/buddy.h"
#include "mm/hvo.h"
#include "mm/pcp_slot.h"
#include "mm/transit.h"

/* Entries a CPU may hold: with all CPUs together a PCP_SHARE of the zone at most. */
static u32 huge_high(struct zone *zone, struct pcp_zone *mine)
{
	const s64 high = likely(mine->high) ? mine->high : pcp_high(zone, mine);

	return (u32)MIN((u64)high / BLOCK_FRAMES, PCP_HUGE_MAX);
}

/* Blocks kept for ranges are not for whoever asks for a huge page: CMA stays with the buddy. Zone lock held. */
static u32 take_block(struct zone *zone)
{
	u32 index = BLOCK_NONE;

	for (unsigned type = 0; type < MIGRATE_CMA && index == BLOCK_NONE; type++)
		index = buddy_take_blocks(zone, BLOCK_ORDER, FREE_HUGE, type);
	if (index != BLOCK_NONE)
		block_at(zone->mm, index)->order = BLOCK_ORDER;
	return index;
}

/* One for the caller, and up to `count` for the list; their heads are fetched together. */
static u32 refill(struct zone *zone, struct pcp_zone *mine, u32 count)
{
	u32 first, index;

	spin_lock(&zone->lock);
	first = take_block(zone);
	while (first != BLOCK_NONE && mine->huge_count < count && (index = take_block(zone)) != BLOCK_NONE) {
		mine->huge[mine->huge_count] = index;
		atomic_store_relaxed(&mine->huge_count, mine->huge_count + 1);
		atomic_store_relaxed(&mine->moved, mine->moved + BLOCK_FRAMES);
	}
	spin_unlock(&zone->lock);
	if (first == BLOCK_NONE)
		return BLOCK_NONE;
	atomic_store_relaxed(&mine->moved, mine->moved + BLOCK_FRAMES);
	page_prefetch(pfn_page(zone->mm, block_pfn(first)));
	for (u32 i = 0; i < mine->huge_count; i++)
		page_prefetch(pfn_page(zone->mm, block_pfn(mine->huge[i])));
	return first;
}

void pcp_huge_evict(struct zone *zone, struct pcp_zone *mine, u32 count)
{
	for (u32 i = 0; i < count; i++)
		buddy_free_blocks(zone, mine->huge[i], BLOCK_ORDER, FREE_HUGE);
	atomic_store_relaxed(&mine->huge_count, mine->huge_count - count);
	atomic_store_relaxed(&mine->moved, mine->moved - (s64)count * BLOCK_FRAMES);
	for (u32 i = 0; i < mine->huge_count; i++)
		mine->huge[i] = mine->huge[i + count];
}

u32 pcp_alloc_huge(struct zone *zone, bool may_wait)
{
	struct pcp_zone *mine = pcp_mine(zone);
	u64 tag;
	u32 index;

	if (mine->huge_count > 0) {
		index = mine->huge[mine->huge_count - 1];
		atomic_store_relaxed(&mine->huge_count, mine->huge_count - 1);
	} else {
		index = refill(zone, mine, MIN(huge_high(zone, mine), PCP_HUGE_BATCH - 1));
	}
	if (index == BLOCK_NONE)
		return BLOCK_NONE;
	tag = block_of_used(zone->mm, block_pfn(index))->tag;
	if (likely(tag <= shootdown_done()))
		return index;
	if (may_wait) {
		hvo_settle(zone->mm, index);
		return index;
	}
	block_free(zone, index, BLOCK_ORDER); /* somebody who can wait will find it */
	pcp_add_in_use(zone, -(s64)BLOCK_FRAMES);
	return BLOCK_NONE;
}

bool pcp_free_huge(struct zone *zone, struct pcp_zone *mine, u32 index, const struct block *block)
{
	const u8 type = atomic_load_relaxed(&block->type);
	const u32 high = huge_high(zone, mine);

	mine->lookups_fast++;
	if (high == 0 || type >= MIGRATE_CMA)
		return false;
	if (unlikely(mine->huge_count >= high)) {
		spin_lock(&zone->lock);
		pcp_huge_evict(zone, mine, MIN(mine->huge_count, MAX(high / 2, 1)));
		spin_unlock(&zone->lock);
	}
	mine->huge[mine->huge_count] = index;
	atomic_store_relaxed(&mine->huge_count, mine->huge_count + 1);
	return true;
}
