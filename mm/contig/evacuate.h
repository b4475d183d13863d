/* Making room for memory that cannot be moved, in GiB that hold such memory: see evacuate.c. */
#pragma once

#include "mm/memmap/zone.h"

/*
 * Move movable pages out of a chunk of `order` (below 9) in a tainted GiB (zone/gigablock.h), or
 * else out of a block. The frames are then free, and their block has `type`, or type UNMOVABLE.
 * False if there was nothing to empty, or if this CPU is evacuating already. No lock held; may
 * start rounds and wait, and calls the movers of other holders.
 */
bool evacuate(struct zone *zone, unsigned order, enum migratetype type);

/* Blocks and chunks emptied since the start. Atomic. */
extern struct evacuated {
	u64 blocks, chunks;
} evacuated;
