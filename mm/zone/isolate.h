/*
 * Isolation: a range of blocks from which nothing is given out, so that it can be emptied.
 *
 *   isolate_range()   puts the token on the zone's list; then block by block: is everything in it
 *                     movable? If so, sets the bit and moves free pages to the isolated lists. If
 *                     one block fails, those before it are given back exactly as they were.
 *   (drain, move)     memory that is freed from now on stays on the isolated lists; per-CPU lists
 *                     do not take it
 *   isolate_test()    is everything free?
 *   isolate_undo()    clears the bits; free memory merges again with its surroundings. Always
 *                     called, success or not.
 *
 * The bit stands beside the type and leaves it alone. An isolated run merges only with runs that
 * are isolated too and have the same type. A block in transit gets its bit at once. isolate_range()
 * then waits, without a lock, until the block's holder has published it under the type that its
 * record has by then.
 *
 * Owners: each isolation is a token in its holder's memory. The token is on a list of the zone from
 * before the first bit is set until after the last is cleared. No two tokens of a zone overlap, and
 * every bit is covered by one. Only the holder of the token ends its isolation: with
 * isolate_undo(), or with isolate_end() if it has taken the whole range.
 *
 * Sections: a block whose section opens or closes (UNOPENED, or in transit to it) is not isolated,
 * because opening gives it a new type. A section with a block under a token is not closed. So an
 * isolation ends only when its token ends it.
 *
 * Source: Linux's page isolation as described in "mm/page_isolation: prepare for hygienic
 * freelists", Weiner, 2024. The token is ours.
 */
#pragma once

#include "mm/memmap/zone.h"

/*
 * Isolate `count` blocks of one zone whose sections are open (migratetype_range_zone()). Returns 0
 * with *token holding the isolation. The caller must end it, and until then must not free the token
 * or move it, except with isolate_move().
 *
 * Returns -EBUSY if a part cannot be moved, would be cut, or is isolated already, if a section
 * opens or closes, or if a block in transit takes too long; then nothing is isolated. No lock held;
 * may wait for blocks in transit.
 */
int isolate_range(struct zone *zone, u32 first, u32 count, struct isolation *token);

/*
 * The first frame of block `index` that keeps isolate_range() from isolating the block now, or
 * PFN_NONE. The block has a record. Zone lock held.
 */
pfn_t isolate_obstacle(const struct zone *zone, u32 index);

/*
 * Set the bits at once, whatever the blocks contain, on one block or all of a GiB: for memory that
 * must not be given out again (bad_frames.c). 0; -EBUSY: isolated already, a 1 GiB page would be
 * cut, or a section opens or closes; -EAGAIN: a block lies in a run in transit. Zone lock held.
 */
int isolate_now(struct zone *zone, u32 first, u32 count, struct isolation *token);

/*
 * End the isolation: free memory in its range can be allocated again. Waits for no other CPU's
 * work. No lock held.
 */
void isolate_undo(struct zone *zone, struct isolation *token);

/*
 * End the isolation of a holder that has taken every block of the range and cleared its bit. Zone
 * lock held.
 */
void isolate_end(struct zone *zone, struct isolation *token);

/*
 * Move the isolation from token `from` to token `to`, which must hold none. `from` holds none
 * afterwards. Takes the zone's lock.
 */
void isolate_move(struct zone *zone, struct isolation *from, struct isolation *to);

/* Does any token cover a block of the range? Zone lock held. */
bool isolate_covers(const struct zone *zone, u32 first, u32 count);

/*
 * Is every frame of the range in the buddy? The blocks are examined slice by slice under the lock.
 * Free memory in a range that the caller has isolated stays free, except for a block that
 * bad_frames.c may have in transit for a moment. No lock held.
 */
bool isolate_test(struct zone *zone, u32 first, u32 count);
