/*
 * Observing huge mappings, for cases: the pages brought and flushed for them, and their contents.
 */
#pragma once

#include <arch/pgtable.h>

#include "mm/mapping/huge_map.h"

/*
 * Pages of a size that were brought since huge_count_from_here(), and those mapped now beyond the
 * number mapped then.
 */
void huge_count_from_here(void);
u64 huge_faults(enum pt_level level);
u64 huge_mapped(enum pt_level level);

/* Shootdown rounds since the last call. */
u64 huge_rounds(void);

static inline volatile u64 *word_at(void *addr, u64 offset)
{
	return (volatile u64 *)((char *)addr + offset);
}

/* The number of non-zero words in `bytes` from `offset` on. Touches them. */
u64 dirty_words(void *addr, u64 offset, u64 bytes);

/* Is a page mapped there? *level is the size of its leaf. Touches nothing. */
bool huge_leaf(const void *addr, enum pt_level *level);

/* Is a page mapped there that can be written to? Touches nothing. */
bool huge_writable(const void *addr);
