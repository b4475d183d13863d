/*
 * Writing whole cache lines that will not be read soon: past the caches, without reading them first.
 *
 * On x86, MOVNTI of all 64 bytes of a line fills one write-combining buffer and leaves as one burst (Intel Optimization
 * Reference Manual, "Non-temporal stores"). Weakly ordered: fence_store_nt() before anybody is shown the result.
 */
#pragma once

#include "kernel/types.h"

/* Write a 64-byte, 64-byte aligned line: two words and six zeros. */
static inline void stream_line(void *line, u64 word0, u64 word1)
{
	__asm__ volatile("movnti %1, (%0)\n\t"
			 "movnti %2, 8(%0)\n\t"
			 "movnti %3, 16(%0)\n\t"
			 "movnti %3, 24(%0)\n\t"
			 "movnti %3, 32(%0)\n\t"
			 "movnti %3, 40(%0)\n\t"
			 "movnti %3, 48(%0)\n\t"
			 "movnti %3, 56(%0)"
			 :
			 : "r"(line), "r"(word0), "r"(word1), "r"(0ULL)
			 : "memory");
}
