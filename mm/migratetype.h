/*
 * Migratetypes: what a block is given out for, and how that changes.
 *
 *   The rule (Weiner, "mm: page_alloc: freelist migratetype hygiene", 2023-09): whatever is free lies on the list of its
 *   block's type, always, under zone->lock. So a block changes type whole: its free pages move first, then the type is
 *   written, in one stretch of the lock. Freeing reads the type under the lock, nobody remembers one.
 *
 *   Who changes a type:
 *     take_block()         a wholly free block is claimed for the type that needs one
 *     migratetype_take()   nothing else is left: a block of another type of which at least half is free is claimed, else
 *                          a page is taken and the block keeps its type
 *     migratetype_set()    a range is declared, for CMA
 *     isolate.h            the isolation bit, which leaves the type below it as it is
 *   CMA blocks are never claimed. A run, a 1 GiB page, or a run in transit has one type: it changes as a whole or not at all.
 */
#pragma once

#include "mm/zone.h"

/*
 * Blocks [index, end) get the bits of `set` in place of those of `clear`, as far as one free run or page reaches. Returns how
 * many did. -EBUSY: a 1 GiB page would be cut; -EAGAIN: a run is in transit, ask again unlocked. Zone lock held.
 */
int migratetype_change(struct zone *zone, u32 index, u32 end, u8 clear, u8 set);

/*
 * Blocks from `index` on, below `end`, are isolated no more, as far as one free run reaches, or one block. How many. Never refused: who holds
 * a block, in transit or in use, does not mind. Zone lock held.
 */
u32 migratetype_unisolate(struct zone *zone, u32 index, u32 end);

/* A block that the caller has taken, alone; its isolation bit stays. Zone lock held. */
void migratetype_set_one(struct zone *zone, u32 index, enum migratetype type);

/*
 * Give `count` blocks from `first` on a type, whatever is in them. 0; -EINVAL: not all of it is RAM of one zone, or none; -EBUSY: a 1 GiB
 * page is cut, or a block is not the allocator's to type (firmware, META); -EAGAIN, -ENOMEM as section_open_range(). Nothing has changed
 * then. What CPUs hold of the range stays with them as what it was, unless lists are disabled. Opens sections. No lock held.
 */
int migratetype_set(struct mm *mm, u32 first, u32 count, enum migratetype type);

/*
 * Blocks [first, first + count): *zone is theirs, their sections are open. 0; -EINVAL: none, not all RAM, or not of one zone; as
 * section_open_range(). No lock held.
 */
int migratetype_range_zone(struct mm *mm, u32 first, u32 count, struct zone **zone);

/* Take 2^order frames of another type by the rule above. NULL if there are none. Zone lock held. */
struct page *migratetype_take(struct zone *zone, unsigned order, enum migratetype type);
