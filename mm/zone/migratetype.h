/*
 * Migratetypes: the kind of use that a block is given out for, and how it changes.
 *
 * The rule (Weiner, "mm: page_alloc: freelist migratetype hygiene", 2023-09): free memory lies on
 * the list of its block's type, always, under zone->lock. So a block changes its type as a whole:
 * its free pages move first, then the type is written, without dropping the lock between. A CPU
 * that frees reads the type under the lock and never uses a remembered one.
 *
 * Ways to change a type:
 *
 *   take_block()         a wholly free block is claimed for the type that needs one
 *   migratetype_take()   nothing else is left: a block of another type of which at least half is
 *                        free is claimed, else a page is taken and the block keeps its type
 *   migratetype_set()    a range is declared, for CMA
 *   isolate.h            the isolation bit, which leaves the type below it as it is
 *
 * CMA blocks are never claimed. A run, a 1 GiB page or a run in transit has one type and changes it
 * as a whole or not at all.
 */
#pragma once

#include "mm/memmap/zone.h"

/*
 * Set the bits of `set` and clear those of `clear` in the type of blocks from `index` on, below
 * `end`, as far as one free run or page reaches. Returns the number of blocks changed. -EBUSY: a 1
 * GiB page would be cut; -EAGAIN: the blocks lie in a run in transit, so ask again after dropping
 * the lock. The end of an isolation (`clear` is BLOCK_ISOLATED) is never refused, because the
 * holder of a block in transit or in use is not affected. Zone lock held.
 */
int migratetype_change(struct zone *zone, u32 index, u32 end, u8 clear, u8 set);

/*
 * Give `count` blocks from `first` on a type, whatever they contain. 0; -EINVAL: the range is empty
 * or not all RAM of one zone, or the type is not valid; -EBUSY: a 1 GiB page would be cut, or a
 * block has a type that may not change (firmware, metadata memory, isolated, in transit); -EAGAIN,
 * -ENOMEM as section_open_range(). Nothing has changed after an error, except that sections may
 * have been opened.
 *
 * Frames of the range that lie on per-CPU lists stay there under the old type, unless the lists are
 * disabled. No lock held.
 */
int migratetype_set(struct mm *mm, u32 first, u32 count, enum migratetype type);

/*
 * Give the runs that are free in blocks [first, first + count) and of type `from` the type `to`;
 * runs that reach beyond are cut, free huge pages that do stay as they are. No lock held.
 */
void migratetype_retype_free(struct zone *zone, u32 first, u32 count, enum migratetype from,
			     enum migratetype to);

/*
 * Find the zone of blocks [first, first + count) and open their sections. 0 with *zone set;
 * -EINVAL: the range is empty, not all RAM, or not of one zone; other errors as
 * section_open_range(). No lock held.
 */
int migratetype_range_zone(struct mm *mm, u32 first, u32 count, struct zone **zone);

/*
 * Have unmovable pages some of order `order` for a reclaimable request, or the other way round?
 * No lock held.
 */
bool migratetype_can_share(struct zone *zone, unsigned order, enum migratetype type);

/* Take 2^order frames of another type by the rule above. NULL if there are none. Zone lock held. */
struct page *migratetype_take(struct zone *zone, unsigned order, enum migratetype type);
