/*
 * The free runs that a mode takes, and changes of free runs between huge, bare and full.
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
 * Huge runs of `list`, of on-demand sections, in transit, lose their struct pages: they are BARE
 * and still in transit afterwards. One round.
 */
void hvo_make_bare(struct mm *mm, struct block_list *list);

/*
 * Make free huge runs of a zone bare, or full in mapped sections, with one round (and one more for
 * restores). Takes up to `count` runs of 2 MiB. If there are fewer, it also takes as many 1 GiB
 * runs as cover the missing blocks, the last one perhaps only in part. Returns the number of runs
 * that changed. No lock held.
 */
u64 hvo_bare_free_huge(struct zone *zone, u64 count);

/*
 * Make up to `count` free 2 MiB huge pages free full blocks, with one round. Pages for which
 * metadata memory has no frames stay huge. Returns the number of pages that changed. No lock held.
 */
u64 hvo_full_free_huge(struct zone *zone, u64 count);

/*
 * Free one huge run in transit as hvo_bare_free_huge() does: bare, or full in mapped sections (or
 * still huge for lack of frames).
 */
void hvo_bare_run(struct zone *zone, u32 index);

/*
 * Make up to `count` free full blocks of on-demand sections free huge ones, with one round. Returns
 * the number of blocks. No lock held.
 */
u64 hvo_huge_free_full(struct zone *zone, u64 count);
