/*
 * The buddy: free runs of frames in powers of two.
 *
 *   orders 9..18  whole blocks, lists in the block table, one set per class of struct pages and
 *                 type
 *   orders 0..8   inside one FULL or RESERVED block, lists through its struct pages, one set per
 *                 type
 *
 * All functions: the caller holds zone->lock, except where a comment says otherwise. None
 * allocates, waits or flushes. The buddy keeps the zone's counts of free frames.
 */
#pragma once

#include "mm/memmap/zone.h"

/*
 * Put a wholly free run of `order` (9..18) on its list, merging it with free neighbours of equal
 * class and type. A run above max_order goes to the lists in pieces.
 */
void buddy_free_blocks(struct zone *zone, u32 index, unsigned order, enum free_class class);

/* Put any number of wholly free blocks on the lists, cut into the largest aligned runs. */
void buddy_free_range(struct zone *zone, u32 index, u32 count, enum free_class class);

/*
 * Take one run of exactly `order` of this class and type, splitting a larger one if necessary.
 * BLOCK_NONE if there is none.
 */
u32 buddy_take_blocks(struct zone *zone, unsigned order, enum free_class class,
		      enum migratetype type);

/*
 * Take a free run that reaches into [first, end) off its list; the parts outside go back. Returns
 * the first block after the part that was taken. A free huge page cannot be cut: it must lie
 * inside.
 */
u32 buddy_unlink_within(struct zone *zone, u32 head, u32 first, u32 end);

/* Head of the free run that contains block `index`, or BLOCK_NONE if the block is not free. */
u32 buddy_find_run(struct mm *mm, u32 index);

/*
 * The list of its class that a run is on, and the order of the runs on a list. List k usually holds
 * the runs of order 9 + k. Huge runs exist in orders 9 and 18 only, so eight of their lists hold 2
 * MiB pages by place: those of every eighth GiB.
 *
 * A CPU takes from the list of its own place first, and a freed page goes to the list of its own
 * GiB. So CPUs meet less often on records, list heads and counts.
 */
enum { HUGE_PLACES = 8 };

static inline unsigned buddy_list_of(enum free_class class, u32 index, unsigned order)
{
	if (class != FREE_HUGE || order != BLOCK_ORDER)
		return order - BLOCK_ORDER;
	return index / GIB_BLOCKS % HUGE_PLACES;
}

static inline unsigned buddy_list_order(enum free_class class, unsigned list)
{
	return class == FREE_HUGE && list < HUGE_PLACES ? BLOCK_ORDER : BLOCK_ORDER + list;
}

/*
 * The class that a wholly free block would have, according to its record, or FREE_CLASSES if a
 * block in that state cannot be free.
 */
static inline enum free_class block_free_class(struct block_word word)
{
	switch (word.state) {
	case BLOCK_BARE:
		return FREE_BARE;
	case BLOCK_HUGE:
		return FREE_HUGE;
	case BLOCK_FULL:
		return word.flags & BLOCK_MAPPED ? FREE_MAPPED : FREE_FULL;
	default:
		return FREE_CLASSES;
	}
}
