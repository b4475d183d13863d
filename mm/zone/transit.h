/*
 * Blocks in transit: off every list, while work is done on them that must not happen under a lock.
 *
 *   zone list --block_begin()--> in transit --work, rounds--+--block_publish_free()--> zone list
 *                                                           +--block_publish_used()--> a holder
 *
 * Frames in transit are counted in their zone, so that every frame is accounted for at all times.
 *
 * Functions that handle many blocks take the lock again for each slice of them (LOCK_SLICE), so
 * other CPUs may see only part of them done.
 */
#pragma once

#include "mm/memmap/zone.h"

/*
 * Mark a run that was just taken off its list. `order` is 9..18. `to` is the state that the owner
 * wants to give it; BLOCK_UNOPENED means that its section closes. The caller holds zone->lock, and
 * owns the record from now until it publishes.
 */
void block_begin(struct zone *zone, u32 index, unsigned order, enum block_state to);

/*
 * Take up to `count` free runs of `order` of one class and append them to `list`, in transit to
 * state `to`, which decides the types to take from:
 *   BLOCK_META   unmovable, reclaimable, movable, in this order
 *   BLOCK_BARE   movable, reclaimable, unmovable, CMA: the blocks stay free
 *   others       movable, reclaimable, unmovable
 * Isolated runs are never taken. Returns how many. Takes zone->lock, a slice in each turn.
 */
u64 block_take(struct zone *zone, enum free_class class, unsigned order, u64 count,
	       enum block_state to, struct block_list *list);

/*
 * block_take() of movable and reclaimable runs only: for callers that leave the blocks that
 * metadata memory has opened to it while there are any other ones.
 */
u64 block_take_movable(struct zone *zone, enum free_class class, unsigned order, u64 count,
		       enum block_state to, struct block_list *list);

/* One block; BLOCK_NONE if there is none. */
u32 block_take_one(struct zone *zone, enum free_class class, enum block_state to);

/* Which free blocks may be taken: their classes, and whether CMA's and isolated ones may. */
enum block_source {
	TAKE_HUGE = 1 << FREE_HUGE,
	TAKE_BARE = 1 << FREE_BARE,
	TAKE_FULL = 1 << FREE_FULL,
	TAKE_MAPPED = 1 << FREE_MAPPED,
	TAKE_CMA = 2 << FREE_CLASSES,
	TAKE_ISOLATED = 4 << FREE_CLASSES,
};

/*
 * Take the blocks [index, index + 2^order) out of the free run that has them, in transit to `to`;
 * the rest of the run stays free. Where the run ends earlier, one block is taken. A free huge page
 * is taken whole, and `index` must be its head. `from`: bits of enum block_source. Returns the
 * order that was taken, or 0. Zone lock held.
 */
unsigned block_take_at(struct zone *zone, u32 index, unsigned order, unsigned from,
		       enum block_state to);

/*
 * block_take_at() of the first block, or huge page, among `count` blocks from `first` on.
 * BLOCK_NONE if there is none. Takes zone->lock.
 */
u32 block_take_in(struct zone *zone, u32 first, u32 count, unsigned from, enum block_state to);

/* The work is done and the run belongs to a holder now. Takes zone->lock. */
void block_publish_used(struct zone *zone, u32 index, unsigned order);

/*
 * The work is done, or given up, and the run is free: in the class of its present state, under the
 * type that its record has *now*. Takes zone->lock.
 */
void block_publish_free(struct zone *zone, u32 index, unsigned order);

/*
 * Join the 512 pieces of a GiB, each in transit, into one run in transit, all of one type. 0;
 * -EBUSY if another CPU has isolated a piece meanwhile, a piece is set aside for CMA, or the pieces
 * lie in sections of both styles; then nothing has changed and the caller publishes the pieces as
 * they are. From here to publication no CPU can isolate a part of the run. Takes zone->lock.
 */
int block_join(struct zone *zone, u32 first);

/*
 * The opposite: cut a run in transit into 2 MiB pieces, each in transit, appended to `pieces`.
 * Takes zone->lock.
 */
void block_cut(struct zone *zone, u32 first, struct block_list *pieces);

/* Free a run that its holder has in use, not in transit. Takes zone->lock. */
void block_free(struct zone *zone, u32 index, unsigned order);

/*
 * block_begin() and the functions after it, for lists of runs, each of the order that its head's
 * record says. Neighbours in the list that lie in one zone are handled slice by slice, with its
 * lock held once for each slice. block_list_publish_used() keeps the list and adds `flags` to the
 * records. The functions that free empty the list and clear BLOCK_POOL.
 */
void block_list_begin(struct mm *mm, struct block_list *list, enum block_state to);
void block_list_publish_used(struct mm *mm, struct block_list *list, u8 flags);
void block_list_publish_free(struct mm *mm, struct block_list *list);
void block_list_free(struct mm *mm, struct block_list *list);
