/* Making room for memory that cannot be moved, in GiB that hold such memory: see evacuate.c. */
#pragma once

#include "mm/memmap/zone.h"

/*
 * Move movable pages out of a chunk of `order` (below 9) in a tainted GiB (zone/gigablock.h). The
 * frames are then free, and their block has `type`. False if no such chunk could be emptied, if
 * this CPU is evacuating already, or, without `again`, if a search found nothing lately. No lock
 * held; may start rounds and wait, and calls the movers of other holders.
 */
bool evacuate(struct zone *zone, unsigned order, enum migratetype type, bool again);

/* Chunks emptied since the start. Atomic. */
extern u64 evacuated_chunks;
