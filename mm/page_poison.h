/*
 * Poison: free memory is filled with a pattern, and a page whose pattern was changed while it was free is caught when it is
 * handed out (poison=on). For debugging: it touches every byte twice.
 *
 *   on the small lists and per-CPU lists   always poisoned: on freeing, and when a block is split
 *   a free huge or full block              poisoned if BLOCK_POISONED: freed by page_free(), or page by page, and not
 *                                          taken for anything else since
 *
 * Memory above must be real: arenas over phantom RAM never set WATCH_POISON.
 *
 * Source: Linux documentation, kernel parameter page_poison; the idea is older (Bonwick, "The slab allocator", 1994-06).
 */
#pragma once

#include "mm/zone.h"

#define PAGE_POISON 0xdeadbea7deadbea7ULL

void page_poison_fill(pfn_t pfn, u64 frames);

/* The first word that is not the poison, or NULL. */
const u64 *page_poison_broken(pfn_t pfn, u64 frames);

/* A full block is about to be split: if it should be poisoned it is looked at, else it is poisoned now. */
void page_poison_split(struct mm *mm, u32 index);

/* Blocks taken for something else than page_alloc(): their contents will change. Their records are the caller's. */
void page_poison_forget(struct mm *mm, u32 index, u32 blocks);

/* Frames about to enter the small lists without page_free(): remainders at start-up. */
static inline void page_poison_new(struct mm *mm, pfn_t pfn, u64 frames)
{
	if (unlikely(atomic_load_relaxed(&mm->watch) & WATCH_POISON))
		page_poison_fill(pfn, frames);
}

void page_poison_allocated(struct mm *mm, struct page *page, unsigned order);
void page_poison_freed(struct mm *mm, struct page *page, unsigned order);
