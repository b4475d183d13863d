/*
 * Looking at huge mappings: what was brought and flushed for them, and what lies in them. For
 * cases.
 */
#pragma once

#include <arch/pgtable.h>

#include "mm/mapping/huge_map.h"

/* Pages of a size brought, and mapped now beyond what was, since huge_count_from_here(). */
void huge_count_from_here(void);
u64 huge_faults(enum pt_level level);
u64 huge_mapped(enum pt_level level);

/* Rounds of shootdown since the last time it was asked. */
u64 huge_rounds(void);

static inline volatile u64 *word_at(void *addr, u64 offset)
{
	return (volatile u64 *)((char *)addr + offset);
}

/* Words of `bytes` from `offset` on that are not zero. Touches them. */
u64 dirty_words(void *addr, u64 offset, u64 bytes);

/* Something is mapped there that can be written to. Touches nothing. */
bool huge_writable(const void *addr);
