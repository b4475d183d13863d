/*
 * Blocks in transit: off every list, while work is done on them that must not happen under a lock.
 *
 *   zone list --block_begin()--> in transit --work, rounds--> --block_publish_free()--> zone list, or
 *                                                             --block_publish_used()--> a holder
 *
 * Frames in transit are counted as such in their zone, so that they are never unaccounted for.
 *
 * Calls for many blocks take the lock again for each slice of them (LOCK_SLICE): other CPUs see a part of them done.
 */
#pragma once

#include "mm/zone.h"

/*
 * Mark a run that was just taken off its list. `order` is 9..18. `to` is the state that the owner wants to give it; BLOCK_UNOPENED means
 * that its section closes. The caller holds zone->lock and owns the record from here until it publishes.
 */
void block_begin(struct zone *zone, u32 index, unsigned order, enum block_state to);

/*
 * Take up to `count` free runs of `order` of one class into the end of `list`, in transit to state `to`, which decides the types:
 *   BLOCK_META   unmovable, reclaimable, movable, in this order
 *   BLOCK_BARE   movable, reclaimable, unmovable, CMA: the blocks stay free
 *   others       movable, reclaimable, unmovable
 * Isolated runs are never taken. Returns how many. Takes zone->lock, a slice in each turn.
 */
u64 block_take(struct zone *zone, enum free_class class, unsigned order, u64 count, enum block_state to,
	       struct block_list *list);

/* One block; BLOCK_NONE if there is none. */
u32 block_take_one(struct zone *zone, enum free_class class, enum block_state to);

/*
 * The first of `count` blocks from `first` on that lies free in the zone in one of `classes` (bits, 1 << FREE_BARE ...; not huge), not set
 * aside for CMA, not isolated: cut out of its run, in transit to `to`. BLOCK_NONE if there is none. Takes zone->lock.
 */
u32 block_take_in(struct zone *zone, u32 first, u32 count, unsigned classes, enum block_state to);

/* Work done: the run belongs to a holder now. Takes zone->lock. */
void block_publish_used(struct zone *zone, u32 index, unsigned order);

/*
 * Work done, or given up: the run is free, in the class of its present state, under the type its record has *now*.
 * Takes zone->lock.
 */
void block_publish_free(struct zone *zone, u32 index, unsigned order);

/*
 * 512 pieces of a GiB, each in transit, become one run in transit, all of one type. 0; -EBUSY: another CPU has isolated a piece meanwhile,
 * or one is set aside for CMA, or sections of two styles are among them: nothing has changed, the caller publishes them as they
 * are. From here to publication nobody isolates a part of it. Takes zone->lock.
 */
int block_join(struct zone *zone, u32 first);

/* The opposite: a run in transit becomes its 2 MiB pieces, each in transit, at the end of `pieces`. Takes zone->lock. */
void block_cut(struct zone *zone, u32 first, struct block_list *pieces);

/* A holder gives a run back that was never in transit. Takes zone->lock. */
void block_free(struct zone *zone, u32 index, unsigned order);

/*
 * The same for lists of runs, each of the order its head's record says; a turn at the lock for each slice of equal zone.
 * publish_used keeps the list and adds `flags` to the records; the free ones empty it and take away BLOCK_POOL.
 */
void block_list_begin(struct mm *mm, struct block_list *list, enum block_state to);
void block_list_publish_used(struct mm *mm, struct block_list *list, u8 flags);
void block_list_publish_free(struct mm *mm, struct block_list *list);
void block_list_free(struct mm *mm, struct block_list *list);
