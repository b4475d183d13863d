/*
 * Isolation: a range of blocks from which nothing is given out, so that it can be emptied.
 *
 *   isolate_range()   the token is put on the zone's list; block by block: nothing in it that cannot move? bit set, free pages to the isolated lists
 *                     |  one fails: those before it are given back exactly as they were
 *   (drain, move)     what is freed from now on stays on the isolated lists; per-CPU lists do not take it
 *   isolate_test()    is everything free?
 *   isolate_undo()    bits cleared, what is free merges again with its surroundings. Always called, success or not
 *
 * The bit stands beside the type and leaves it alone. Runs merge only with what is isolated too and
 * has the same type. A block that is in transit gets its bit at once; isolate_range() waits,
 * unlocked, until its holder has published it under the type it has then.
 *
 * Owners: each isolation is a token in its holder's memory, on a list of the zone from the first
 * bit to the last. No two tokens of a zone overlap, and each bit is covered by one. Only the token
 * ends its isolation: isolate_undo(), or isolate_end() by a holder that has taken the whole range.
 *
 * Sections: a block whose section opens or closes (UNOPENED, or in transit to it) is not isolated,
 * because opening gives it a new type; a section with a block under a token is not closed. So an
 * isolation outlives everything but its token.
 *
 * Source: Linux's page isolation as described in "mm/page_isolation: prepare for hygienic
 * freelists", Weiner, 2024. The token is ours.
 */
#pragma once

#include "mm/zone.h"

/*
 * Isolate `count` blocks of one zone whose sections are open (migratetype_range_zone()). 0: *token
 * is the caller's isolation, which it must end; the token stays where it is until then. -EBUSY: a
 * part cannot be moved, is cut, is isolated already, or its section opens or closes; nothing is
 * isolated then. No lock held; may wait for blocks in transit.
 */
int isolate_range(struct zone *zone, u32 first, u32 count, struct isolation *token);

/*
 * The bits at once, whatever is in the blocks, which are one block or all of a GiB: for memory that
 * must not be given out again (bad_frames.c). 0; -EBUSY: isolated already, a 1 GiB page would be
 * cut, or the section opens or closes; -EAGAIN: in a run in transit. Zone lock held.
 */
int isolate_now(struct zone *zone, u32 first, u32 count, struct isolation *token);

/*
 * The isolation ends; what is free in its range can be had again. Waits for nobody. No lock held.
 */
void isolate_undo(struct zone *zone, struct isolation *token);

/* The same for a holder that has taken all of the range, bits included. Zone lock held. */
void isolate_end(struct zone *zone, struct isolation *token);

/*
 * `to`, which stands for nothing, is the isolation now, and `from` is none. Takes the zone's lock.
 */
void isolate_move(struct zone *zone, struct isolation *from, struct isolation *to);

/* Does any token cover a block of the range? Zone lock held. */
bool isolate_covers(const struct zone *zone, u32 first, u32 count);

/*
 * Is every frame of the range in the buddy? Looked at in turns at the lock: what is free in a range that the caller has isolated stays
 * so, but for a block that bad_frames.c has in transit for a moment. No lock held.
 */
bool isolate_test(struct zone *zone, u32 first, u32 count);
