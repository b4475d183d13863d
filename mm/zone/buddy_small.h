/* The buddy below 2 MiB, orders 0 to 8. Zone lock held. */
#pragma once

#include "mm/zone/buddy.h"

/* Set the bits of the 2^order frames (order < 9) of a block from frame `first` on. */
static inline void block_map_add(u64 map[BLOCK_FRAMES / 64], u64 first, unsigned order)
{
	if (order < 6)
		map[first / 64] |= ((1ULL << (1u << order)) - 1) << first % 64;
	else
		for (u64 w = first / 64; w < (first + order_pages(order)) / 64; w++)
			map[w] = ~0ULL;
}

/*
 * Move all free chunks of a FULL block from their lists to those of type byte `to`, which the
 * caller writes to the record next.
 */
void buddy_move_pages(struct zone *zone, u32 index, u8 to);

/*
 * Free 2^order frames (order < 9) of a FULL or RESERVED block. A block that becomes wholly free
 * moves to the list of its class.
 */
void buddy_free_pages(struct zone *zone, struct page *page, unsigned order);

/*
 * buddy_free_pages() onto the list of `type`, which need not be the block's. The caller has looked
 * it up, or took it from a cache with pcp.type_cache=on.
 */
void buddy_free_pages_as(struct zone *zone, struct page *page, unsigned order, u8 type);

/*
 * For callers that want many frames where no large run is left.
 *
 * buddy_blocks_in_pieces() finds up to `count` blocks by the first free chunks of `order`. At most
 * `max` frames are free in all of them together, and in none the chunk is all that is free. Returns
 * how many there are. The caller may drop the lock before the second step: buddy_take_pieces()
 * takes all free chunks of a block if its type is still `type`, adds their frames to `map` as bits,
 * and returns the number of frames.
 */
unsigned buddy_blocks_in_pieces(struct zone *zone, unsigned order, enum migratetype type, u64 max,
				u32 *blocks, unsigned count);
u64 buddy_take_pieces(struct zone *zone, u32 index, enum migratetype type,
		      u64 map[BLOCK_FRAMES / 64]);

/*
 * The caller has all frames of a FULL block that are not free: the block becomes wholly free, and
 * its chunks leave their lists without being merged one by one.
 */
void buddy_free_rest(struct zone *zone, u32 index);

/* Take 2^order frames (order < 9) of `type` from the small lists. NULL if there are none. */
struct page *buddy_take_pages(struct zone *zone, unsigned order, enum migratetype type);

/*
 * Take exactly this frame out of the free chunk that it lies in; the rest of the chunk stays free.
 * False if the frame is not free.
 */
bool buddy_take_frame(struct zone *zone, struct page *page);

/* Turn a FULL block that is off all lists into small chunks on the lists. */
void buddy_split_block(struct zone *zone, u32 index);
