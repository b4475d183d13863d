/*
 * HVO: changes of free runs between huge, bare and full, and 2 MiB pages out of 1 GiB pages.
 */
#pragma once

#include "mm/hvo/hvo.h"

/*
 * Runs of `list`, in transit, that no longer share tails go to `done`, in transit: BARE, or in
 * mapped sections FULL. One round for all that were huge and become bare; the mode restores the
 * others. Runs for which there are no frames stay in `list`, still huge.
 */
void hvo_unshare(struct mm *mm, const struct hvo_mode *mode, struct block_list *list,
		 struct block_list *done);

/*
 * Demote 1 GiB pages of `list` (in transit) to 512 pages of 2 MiB each, which go to `done`, in
 * transit. One round covers all that become bare on the way; the mode restores those of mapped
 * sections and makes their pieces pages. Heads are reserved first. Pages for which there are no
 * heads, or in mapped sections no struct pages, stay in `list`, unchanged. Returns how many were
 * demoted.
 */
u64 hvo_demote(struct mm *mm, const struct hvo_mode *mode, struct block_list *list,
	       struct block_list *done);

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
 * Free one huge page of a mapped section that is not in use. When this returns it is free with all
 * its struct pages, or still huge if there are no frames for them. At the call the page must be
 * counted nowhere in its zone: no longer as in use, not yet as free or in transit. No lock held.
 */
void hvo_free_restored(struct zone *zone, const struct hvo_mode *mode, u32 index);

/*
 * Make up to `count` free full blocks of on-demand sections free huge ones, with one round. Returns
 * the number of blocks. No lock held.
 */
u64 hvo_huge_free_full(struct zone *zone, u64 count);

/*
 * Make a free huge or full run among `count` blocks from `first` on bare. False if there is none.
 * No lock held.
 */
bool hvo_bare_in(struct zone *zone, u32 first, u32 count);
