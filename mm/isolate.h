/*
 * Isolation: a range of blocks from which nothing is given out, so that it can be emptied.
 *
 *   isolate_range()   block by block: nothing in it that cannot move? bit set, free pages to the isolated lists
 *                     |  one fails: those before it are given back exactly as they were
 *   (drain, move)     what is freed from now on stays on the isolated lists; per-CPU lists do not take it
 *   isolate_test()    is everything free?
 *   isolate_undo()    bits cleared, what is free merges again with its surroundings. Always called, success or not
 *
 * The bit stands beside the type and leaves it alone. Runs merge only with what is isolated too and has the same type.
 * A block that is in transit gets its bit at once; isolate_range() waits, unlocked, until its holder has published it
 * under the type it has then.
 *
 * Who isolated a range owns its isolation: a second one that overlaps gets -EBUSY. Source: Linux's page isolation as described in
 * "mm/page_isolation: prepare for hygienic freelists", Weiner, 2024.
 */
#pragma once

#include "mm/zone.h"

/*
 * Isolate `count` blocks of one zone whose sections are open (migratetype_range_zone()). 0; -EBUSY: something in it cannot be
 * moved, is cut, or is isolated already; nothing is isolated then. No lock held; may wait for blocks in transit.
 */
int isolate_range(struct zone *zone, u32 first, u32 count);

/* The opposite, for the same range or the part of it that is still isolated. Waits for nobody. No lock held. */
void isolate_undo(struct zone *zone, u32 first, u32 count);

/* Is every frame of the range in the buddy? Zone lock held. */
bool isolate_test(struct zone *zone, u32 first, u32 count);
