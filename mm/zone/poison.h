/*
 * The pattern that fills free memory under debug.poison=on, and the mark of blocks that are known
 * to be filled with it (BLOCK_POISONED). page/page_poison.h says when memory is filled and checked.
 */
#pragma once

#include "mm/memmap/zone.h"

#define PAGE_POISON 0xdeadbea7deadbea7ULL

void poison_fill(pfn_t pfn, u64 frames);

/* The first word that is not the poison, or NULL. */
const u64 *poison_broken(pfn_t pfn, u64 frames);

/*
 * Clear the mark of blocks that are taken for a use other than page_alloc(): their contents will
 * change. The caller owns the records.
 */
void poison_forget(struct mm *mm, u32 index, u32 blocks);

/* Fill frames that enter the small lists without page_free(): remainders at start-up. */
static inline void poison_new(struct mm *mm, pfn_t pfn, u64 frames)
{
	if (unlikely(atomic_load_relaxed(&mm->watch) & WATCH_POISON))
		poison_fill(pfn, frames);
}
