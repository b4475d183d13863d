/* Making room for memory that cannot be moved, in GiB that hold such memory: see evacuate.c. */
#pragma once

#include "mm/memmap/zone.h"

/*
 * Move movable pages out of one block of a tainted GiB (zone/gigablock.h). The block is then free
 * and of type UNMOVABLE. False if no block could be emptied, or if this CPU is emptying one
 * already. No lock held; may start rounds and wait, and calls the movers of other holders.
 */
bool evacuate_block(struct zone *zone);

/* Blocks emptied, attempts that failed, and frames moved, by this machine since the start. */
struct evacuated {
	u64 blocks, failed, frames;
};
struct evacuated evacuated(void);
