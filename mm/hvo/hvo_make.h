/*
 * HVO, the way to huge pages: the steps of which the modes are made. Each works on all runs of a
 * batch and may divide them among CPUs (hvo_share.h). No lock held.
 */
#pragma once

#include "mm/hvo/hvo_steps.h"

/*
 * Passes 1 and 2. Put every section of the batch under a table, with one round for all splits, or
 * with a round after each of them. Runs for whose section there was no table are left out. Other
 * CPUs' rounds after a split are waited for.
 */
void hvo_split(struct hvo_batch *batch);

/*
 * Pass 3, after a split. Every run becomes a huge page that shares its tails. The frames of private
 * struct pages are gated, and a round is due, or each page has a round of its own and its frames
 * are free after it.
 */
void hvo_remap(struct hvo_batch *batch);

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
