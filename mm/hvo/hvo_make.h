/*
 * HVO, the way to huge pages: the steps of which the modes are made. Each works on all runs of a
 * batch and may divide them among CPUs (hvo_share.h). No lock held.
 */
#pragma once

#include "mm/hvo/hvo_steps.h"

/*
 * All four passes (hvo.c).
 *
 * 1. Put every section of the batch under a table. Runs for whose section there was no table are
 *    left out.
 * 2. One round for all splits, or one after each of them. Other CPUs' rounds after a split are
 *    waited for.
 * 3. Every run becomes a huge page that shares its tails. The frames of private struct pages are
 *    gated, and a round is due, or each page has a round of its own and its frames are free after
 *    it.
 * 4. The round of the HVO series is at once. Ours is usually left to hvo_complete_round().
 */
void hvo_make_huge(struct hvo_batch *batch);

/*
 * block_join() with a frame of the zone's metadata memory reserved for the head of the whole. 0;
 * -ENOMEM or -EBUSY with nothing changed.
 */
int hvo_join_with_head(struct zone *zone, u32 first);

/*
 * Turn the 512 blocks from `first` on into one huge page in transit. Each is a piece in transit,
 * bare or full, of an on-demand section. One round if any was full. 0; -ENOMEM, or -EBUSY as
 * block_join() returns it, with nothing changed.
 */
int hvo_gather(struct mm *mm, u32 first);

/* Make FULL runs huge pages with all their struct pages: write every tail. */
void hvo_form(struct hvo_batch *batch);
