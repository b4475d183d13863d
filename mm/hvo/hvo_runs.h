/*
 * HVO: the free runs that modes take, by class.
 *
 *   huge     shared tails, as an earlier page left them
 *   bare     no struct pages; a head frame is reserved for each run
 *   full     all struct pages, where no mode has to look for them
 *   mapped   all struct pages, in mapped sections: the baselines work on these
 *
 * Each call appends up to `count` runs of `order` of one zone to `list`, in transit, and returns
 * how many. A head frame is reserved before its run is unlinked. No lock held.
 */
#pragma once

#include "mm/hvo/hvo.h"

u64 hvo_take_huge(struct zone *zone, unsigned order, u64 count, struct block_list *list);

/* Sections are opened mapped as needed, and a head frame is reserved for each run if asked for. */
u64 hvo_take_mapped(struct zone *zone, unsigned order, u64 count, struct block_list *list);
u64 hvo_take_mapped_and_heads(struct zone *zone, unsigned order, u64 count,
			      struct block_list *list);

/* Sections are opened on demand as needed; or only runs are taken that are there already. */
u64 hvo_take_bare(struct zone *zone, unsigned order, u64 count, struct block_list *list);
u64 hvo_take_bare_there(struct zone *zone, unsigned order, u64 count, struct block_list *list);

/* Runs with struct pages of either kind of section. None is opened, and no head is reserved. */
u64 hvo_take_full(struct zone *zone, unsigned order, u64 count, struct block_list *list);

/*
 * Join 512 blocks in transit, from `first`, to a run of GIGA_ORDER for the mode. In mapped sections
 * it is FULL, with a head frame reserved if the mode wants one. Elsewhere it is HUGE, and modes
 * that work on mapped sections have no use for it. 0, -EBUSY or -ENOMEM; after an error they are
 * still pieces.
 */
int hvo_join(struct zone *zone, const struct hvo_mode *mode, u32 first);
