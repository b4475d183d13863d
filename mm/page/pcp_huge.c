/*
 * Per-CPU lists, order 9: a few HUGE blocks by number, with formed heads and shared tails. See
 * pcp.h.
 *
 * With a baseline of hvo=, freed pages go to the buddy and new ones are made. These lists serve
 * only where making a page finds no memory.
 *
 * An entry is found through its block record of 32 bytes. The struct page is touched only when the
 * entry is given out, and prefetched PCP_HUGE_AHEAD entries before: the heads of a whole list would
 * evict each other, because each lies at the start of a frame. Entries keep the generation in their
 * record. A block may therefore be listed while a round for its former tails is still due; it is
 * given out when the round is done.
 */
#include "mm/page/pcp_huge.h"

#include "mm/hvo/hvo.h"
#include "mm/page/pcp_drain.h"
#include "mm/zone/buddy_huge.h"
#include "mm/zone/transit.h"
#include "mm/zone/watermark.h"

/* Entries that a CPU may hold. All CPUs together hold at most a PCP_SHARE-th of the zone. */
static u32 huge_high(struct zone *zone, struct pcp_zone *mine)
{
	const s64 high = likely(mine->high) ? mine->high : pcp_high(zone, mine);

	return (u32)MIN((u64)high / BLOCK_FRAMES, PCP_HUGE_MAX);
}

/*
 * Blocks to take in one turn: all that the list may have, but of what the zone keeps back no more
 * than the one that was admitted, because the list is given out without asking the zone again.
 */
static u32 refill_count(struct zone *zone, struct pcp_zone *mine)
{
	return (u32)MAX(MIN(huge_high(zone, mine), zone_spare(zone) / BLOCK_FRAMES), 1);
}

/*
 * Fill the empty list with up to `count` blocks in one turn at the lock, the buddy's first block
 * last. CMA blocks are kept for ranges and not given to any request for a huge page, so they stay
 * with the buddy.
 */
static void refill(struct zone *zone, struct pcp_zone *mine, u32 count)
{
	u32 taken = 0;

	zone_lock(zone);
	for (unsigned type = 0; type < MIGRATE_CMA && taken < count; type++)
		taken +=
			buddy_take_huge(zone, BLOCK_ORDER, type, mine->huge + taken, count - taken);
	zone_unlock(zone);
	for (u32 i = 0; i < taken / 2; i++) {
		const u32 first = mine->huge[i];

		mine->huge[i] = mine->huge[taken - 1 - i];
		mine->huge[taken - 1 - i] = first;
	}
	atomic_store_relaxed(&mine->huge_count, taken);
	atomic_store_relaxed(&mine->moved, mine->moved + (s64)taken * BLOCK_FRAMES);
}

void pcp_huge_evict(struct zone *zone, struct pcp_zone *mine, u32 count)
{
	buddy_free_huge(zone, mine->huge, count);
	atomic_store_relaxed(&mine->huge_count, mine->huge_count - count);
	atomic_store_relaxed(&mine->moved, mine->moved - (s64)count * BLOCK_FRAMES);
	for (u32 i = 0; i < mine->huge_count; i++)
		mine->huge[i] = mine->huge[i + count];
}

u32 pcp_alloc_huge(struct zone *zone, bool admitted, bool may_wait)
{
	struct pcp *pcp = pcp_enter(zone->mm);
	struct pcp_zone *mine = pcp->zone[zone->index];
	u32 index = BLOCK_NONE;

	if (mine->huge_count == 0 && admitted)
		refill(zone, mine, refill_count(zone, mine));
	if (mine->huge_count > 0) { /* the round of this entry may be due */
		index = mine->huge[mine->huge_count - 1];
		atomic_store_relaxed(&mine->huge_count, mine->huge_count - 1);
	}
	pcp_leave(zone->mm, pcp);
	if (index == BLOCK_NONE || likely(!pcp_huge_is_due(zone->mm, index)))
		return index;
	if (may_wait) {
		hvo_complete_round(zone->mm, index);
		return index;
	}
	block_free(zone, index, BLOCK_ORDER); /* a caller that can wait will find it */
	pcp_count_in_use(zone, -(s64)BLOCK_FRAMES);
	return BLOCK_NONE;
}

/* Evict entries. Their records are written under the lock, so they are prefetched before. */
static void evict_some(struct zone *zone, struct pcp_zone *mine, u32 count)
{
	for (u32 i = 0; i < count; i++)
		__builtin_prefetch(block_of_used(zone->mm, block_pfn(mine->huge[i])), 1);
	zone_lock(zone);
	pcp_huge_evict(zone, mine, count);
	zone_unlock(zone);
}

bool pcp_free_huge_slowly(struct zone *zone, struct pcp_zone *mine, u32 index,
			  struct block_word word)
{
	const u32 high = huge_high(zone, mine);

	if (high > 0 && mine->huge_count >= high)
		evict_some(zone, mine, MIN(mine->huge_count, DIV_ROUND_UP(high * 3, 4)));
	/* The type is read after this CPU has declared that it holds something: see pcp.h. */
	word = block_look(block_of_used(zone->mm, block_pfn(index)));
	return high > 0 && pcp_push_huge(mine, index, word);
}
