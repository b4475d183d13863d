/*
 * Poison: free memory is filled with a pattern, and a page whose pattern was changed while it was
 * free is caught when it is handed out (debug.poison=on). For debugging; it touches every byte
 * twice.
 *
 *   on the small lists and per-CPU lists   always poisoned: on freeing, and when a block is split
 *   a free huge or full block              poisoned if BLOCK_POISONED: freed by page_free(), or
 *                                          page by page, and not taken for anything else since
 *
 * The memory must be real: arenas over phantom RAM never set WATCH_POISON.
 *
 * Source: Linux documentation, kernel parameter page_poison; the idea is older (Bonwick, "The slab
 * allocator", 1994-06).
 */
#pragma once

#include "mm/zone/poison.h"

/* A full block is about to be split. Check it if it should be poisoned; otherwise poison it now. */
void page_poison_split(struct mm *mm, u32 index);

void page_poison_allocated(struct mm *mm, struct page *page, unsigned order);
void page_poison_freed(struct mm *mm, struct page *page, unsigned order);
