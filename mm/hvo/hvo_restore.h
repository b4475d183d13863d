/*
 * HVO, the way back: private struct pages for huge pages.
 */
#pragma once

#include "mm/hvo/hvo.h"

/*
 * The opposite of hvo_optimise(), before pages of mapped sections go back to the buddy, or when
 * free pages of on-demand sections become small: all their struct pages become private again. Pages
 * that have all their struct pages already are just moved to `done`. None has a formed head then.
 *
 * A page for which there are no frames does not stop the others. Returns 0 or -ENOMEM. *restored
 * counts the pages that were restored, which moved to `done`; pages without frames stay in `list`,
 * still huge and whole (the contract of the HVO series: error *and* count).
 */
int hvo_restore(struct mm *mm, const struct hvo_mode *mode, struct block_list *list,
		struct block_list *done, u64 *restored);

/*
 * A page that has all its struct pages is ordinary memory again. A huge one keeps a formed, frozen
 * head on the free list too.
 */
static inline void hvo_forget_head(const struct mm *mm, u32 index)
{
	page_set_kind(block_page(mm, index), 0, 0);
}

/*
 * Free full blocks of mapped sections may have struct pages outside their section's memmap: heads
 * that a mode made anew, and tails from a time when the section's frames were gated. The section's
 * frames take their place, with one round for all, so that the metadata blocks of the others can go
 * back. Blocks for which the section has no frame stay as they are. Returns how many changed. No
 * lock held.
 */
u64 hvo_bring_home(struct zone *zone);
