/*
 * The buddy: free runs of frames in powers of two.
 *
 *   orders 9..18  whole blocks, lists in the block table, one set per class of struct pages and type
 *   orders 0..8   inside one FULL or RESERVED block, lists through its struct pages, one set per type
 *
 * All functions: caller holds zone->lock. None allocates, waits or flushes. Counts of the zone are kept here.
 */
#pragma once

#include "mm/zone.h"

/* Put a wholly free run of `order` (9..18) on its list, merging with free neighbours of equal class and type; in pieces if it is above max_order. */
void buddy_free_blocks(struct zone *zone, u32 index, unsigned order, enum free_class class);

/* The same for any number of blocks: cut into the largest aligned runs. */
void buddy_free_range(struct zone *zone, u32 index, u32 count, enum free_class class);

/* Take one run of exactly `order` of this class and type, splitting a larger one. BLOCK_NONE if there is none. */
u32 buddy_take_blocks(struct zone *zone, unsigned order, enum free_class class, enum migratetype type);

/*
 * Many huge pages at once: of exactly `order` (9 or 18), as many as there are of up to `count`, returned; and of 2 MiB back, BLOCK_HUGE,
 * each to the list of its type. Their records keep the order.
 */
u32 buddy_take_huge(struct zone *zone, unsigned order, enum migratetype type, u32 *pages, u32 count);
void buddy_free_huge(struct zone *zone, const u32 *pages, u32 count);

/* Take the free run that is headed by `index`, whatever its order, off its list. */
void buddy_unlink_blocks(struct zone *zone, u32 index);

/*
 * The same for a run that reaches into [first, end): what lies outside is put back. Returns the first block after what was taken.
 * A free 1 GiB page is not cut: it lies inside.
 */
u32 buddy_unlink_within(struct zone *zone, u32 head, u32 first, u32 end);

/* Head of the free run that contains block `index`, or BLOCK_NONE if the block is not free. */
u32 buddy_find_run(struct mm *mm, u32 index);

/* All free chunks of a FULL block leave the lists they are on for those of type byte `to`, which the caller writes next. */
void buddy_move_pages(struct zone *zone, u32 index, u8 to);

/* Free 2^order frames (order < 9) of a FULL or RESERVED block; a block that becomes wholly free moves to its class. */
void buddy_free_pages(struct zone *zone, struct page *page, unsigned order);

/*
 * The same, onto the list of a type that need not be the block's: looked up by the caller, or cached with pcp_type_cache=on.
 */
void buddy_free_pages_as(struct zone *zone, struct page *page, unsigned order, u8 type);

/*
 * For who wants many frames where large runs are gone: the block of the first free chunk of `order`, if no more than `max` of its
 * frames are free and that chunk is not all of them; else BLOCK_NONE. Then, perhaps after dropping the lock between: all
 * free chunks of a block of `type`, as bits added to `map`. Returns how many frames.
 */
u32 buddy_block_in_pieces(struct zone *zone, unsigned order, enum migratetype type, u64 max);
u64 buddy_take_pieces(struct zone *zone, u32 index, enum migratetype type, u64 map[BLOCK_FRAMES / 64]);

/* Take 2^order frames (order < 9) of `type` from the small lists. NULL if there are none. */
struct page *buddy_take_pages(struct zone *zone, unsigned order, enum migratetype type);

/* Take exactly this frame out of the free chunk it lies in, the rest of which stays free. False if it is not free. */
bool buddy_take_frame(struct zone *zone, struct page *page);

/* A FULL block, off all lists, becomes small chunks on the lists. */
void buddy_split_block(struct zone *zone, u32 index);

/*
 * Which list of its class a run is on, and of which order the runs of a list are: list k is that of order 9 + k. Huge runs
 * exist in orders 9 and 18 only, so their lists between hold 2 MiB pages too, by place: those of every eighth GiB. A CPU takes
 * from its own place first, and what is freed goes to its block's: so CPUs meet less often on records, heads and counts.
 */
enum { HUGE_PLACES = 8 };

static inline unsigned buddy_list_of(enum free_class class, u32 index, unsigned order)
{
	return class == FREE_HUGE && order == BLOCK_ORDER ? index / GIB_BLOCKS % HUGE_PLACES : order - BLOCK_ORDER;
}

static inline unsigned buddy_list_order(enum free_class class, unsigned list)
{
	return class == FREE_HUGE && list < HUGE_PLACES ? BLOCK_ORDER : BLOCK_ORDER + list;
}

/* Runs of one order on the lists of a class and type. For reports and tests: it walks. */
u64 buddy_count_runs(const struct zone *zone, enum free_class class, unsigned type, unsigned order);

/*
 * Class of a wholly free block by what its record says, or FREE_CLASSES: a block in that state
 * cannot be free.
 */
enum free_class block_free_class(struct block_word word);

/*
 * max_order lowered or raised: free runs are split or merged again, in the block table only, in turns at the zone's lock; until
 * this returns there are runs of either kind.
 */
void buddy_set_max_order(struct mm *mm, unsigned order);
