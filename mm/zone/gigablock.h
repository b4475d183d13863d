/*
 * Placement by GiB: memory that cannot be moved fills as few GiB as possible (gigablock=).
 *
 *   by block   [u.mmmmmm][mmumm.mm][mm.mmmum][mmmm.umm]   a 1 GiB page can be made nowhere
 *   by GiB     [uuuu.mmm][mmmmm.mm][mm.mmmmm][mmmm.mmm]   three GiB can be emptied
 *
 * A GiB is *tainted* once it holds memory that nobody can move: blocks given out for unmovable or
 * reclaimable pages, metadata memory, boot allocations, firmware ranges. A GiB with holes, or of
 * two nodes, is tainted from the start, because it can never be a 1 GiB page.
 *
 *   1. The free blocks of a tainted GiB have type UNMOVABLE, those of a clean one MOVABLE. Those
 *      that were in use when it was tainted change when a request finds no others. So the free
 *      lists that exist already keep the two apart, and a request for movable pages, which prefers
 *      its own type, finds clean GiB first. There are no lists per GiB.
 *   2. A request for pages that cannot move takes a block of the first tainted GiB that has one
 *      free, in a fixed order. Then it opens a section of a tainted GiB, or claims a block there in
 *      which some frames are free. When no zone has any, movable pages are moved out of a chunk of
 *      a tainted GiB (contig/evacuate.h). When no zone has such a chunk, another GiB is tainted.
 *      Metadata memory takes a block of a tainted GiB that is free in any state.
 *   3. A block with a page that cannot be moved has type UNMOVABLE or RECLAIMABLE: such a request
 *      never takes a single page of a movable block, it claims the block.
 *   4. A GiB whose last such block was freed is clean again when the next request looks at it.
 *
 *   5. A request for movable pages that finds nothing else takes free memory of tainted GiB. Rule 2
 *      moves these pages out again. A pool takes such memory last and gives it back first, unless
 *      a user had it meanwhile; its pages are not moved for rule 2.
 *
 * Hints: gib->tainted and the rank of a GiB are read without a lock. A stale answer places a block
 * less well and breaks nothing. Types change under zone->lock, by the rules of migratetype.h.
 *
 * Sources: van Riel, "1GB superpageblock memory allocation" RFC, 2026, which keeps free lists per
 * GiB; Zhao et al., "Contiguitas", ISCA 2023, which moves a border between two regions.
 */
#pragma once

#include "mm/memmap/zone.h"

/*
 * Begin to place memory by GiB, before any section with boot memory is open: GiB that are not whole
 * or hold boot memory are tainted from the start. False if fewer than `least` GiB are whole: then
 * nothing is placed by GiB. No other CPU allocates.
 */
bool gigablock_begin(struct mm *mm, u64 least);

/* So many start-up asks for: metadata memory and what drivers hold would spoil most of fewer. */
enum { GIGABLOCK_LEAST = 4 };

/*
 * Does gigablock=on ask for it? Start-up begins before any section is open. The baselines, whose
 * sections are mapped from the start, place by block, as Linux does.
 */
extern bool gigablock_at_boot;

/* Is a request for pages of this type placed in tainted GiB? */
static inline bool gigablock_steers(const struct mm *mm, enum migratetype type)
{
	return unlikely(mm->gigablock) &&
	       (type == MIGRATE_UNMOVABLE || type == MIGRATE_RECLAIMABLE);
}

/* Has the GiB of block `index` memory that cannot be moved? A hint; any context. */
static inline bool gigablock_is_tainted(const struct mm *mm, u32 index)
{
	return unlikely(atomic_load_relaxed(&gib_of(mm, index)->tainted));
}

/* The type of a block that a section brings when it is opened. */
static inline enum migratetype gigablock_type(const struct mm *mm, u32 index)
{
	return gigablock_is_tainted(mm, index) ? MIGRATE_UNMOVABLE : MIGRATE_MOVABLE;
}

/*
 * A small-page block of a tainted GiB has become wholly free. Returns the type byte that it is free
 * under. Zone lock held.
 */
u8 gigablock_type_of_freed(const struct mm *mm, u32 index, u8 type);

/*
 * Take a free block of `class` (not huge) in a tainted GiB, in transit to `to`, as block_take_in().
 * BLOCK_NONE if there is none. No lock held.
 */
u32 gigablock_take(struct zone *zone, enum free_class class, enum block_state to);

/*
 * Free blocks of a tainted GiB become unmovable that were in use or isolated when it was tainted.
 * False if there were none. No lock held.
 */
bool gigablock_gather(struct zone *zone);

/* Open a section in a tainted GiB. False if none was opened. No lock held. */
bool gigablock_open(struct zone *zone);

/*
 * Claim blocks of movable pages in tainted GiB for `type`, one after the other, until their free
 * frames include a chunk of `order`. Movable pages stay in them, and when these are freed the
 * frames are for memory that cannot be moved. False if no such chunk appeared. No lock held.
 */
bool gigablock_claim(struct zone *zone, unsigned order, enum migratetype type);

/*
 * Taint the GiB of block `index`, if it is not yet, because memory that cannot be moved has come
 * into it: the block's record says so already, and the caller has held zone->lock since, or made an
 * atomic operation. The GiB's free blocks change their type, a slice in each turn. No lock held.
 */
void gigablock_taint(struct zone *zone, u32 index);

/* Taint one more GiB in which the zone has a free or unopened block. False if there is none. */
bool gigablock_taint_next(struct zone *zone);

/*
 * The tainted GiB in the order in which they are filled: first those that are not whole, then the
 * others, from the highest down. *before is ~0 at first; each call returns the number of the next
 * GiB that overlaps the zone, or GIGABLOCK_NONE. No lock held.
 */
#define GIGABLOCK_NONE (~0ULL)
u64 gigablock_next(const struct zone *zone, u64 *before);

/* `number` is each of them in turn. */
#define gigablock_foreach(number, zone)                                                            \
	for (u64 before = ~0ULL, number = gigablock_next(zone, &before); number != GIGABLOCK_NONE; \
	     number = gigablock_next(zone, &before))
