/* Making one 1 GiB page out of 512 blocks that became free one by one. */
#pragma once

#include "mm/hvo/hvo.h"

/*
 * Turn the 512 blocks from `first` on into one huge page in transit. Each is a piece in transit,
 * bare or full, of an on-demand section. One round if any was full. 0; -ENOMEM, or -EBUSY as
 * block_join() returns it, with nothing changed.
 */
int hvo_gather(struct mm *mm, u32 first);
