/*
 * HVO: the free runs that a mode takes.
 */
#pragma once

#include "mm/hvo/hvo.h"

/*
 * Append up to `count` free runs of `order` of one zone that suit the mode to `list`, in transit,
 * opening sections as needed. For each run that will need a head frame, one is reserved before the
 * run is unlinked. Returns how many. No lock held.
 */
u64 hvo_take_blocks(struct zone *zone, const struct hvo_mode *mode, unsigned order, u64 count,
		    struct block_list *list);

/*
 * Join 512 blocks in transit, from `first`, to a run of GIGA_ORDER for the mode. In mapped sections
 * it is FULL, with a head frame reserved if the mode wants one. Elsewhere it is HUGE, and modes
 * that work on mapped sections have no use for it. 0, -EBUSY or -ENOMEM; after an error they are
 * still pieces.
 */
int hvo_join(struct zone *zone, const struct hvo_mode *mode, u32 first);
