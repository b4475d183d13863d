/*
 * Writing whole cache lines that will not be read soon. The writes bypass the caches and do not
 * read the lines first.
 *
 * On x86, MOVNTI of all 64 bytes of a line fills one write-combining buffer, which leaves as one
 * burst (Intel Optimization Reference Manual, "Non-temporal stores"). These stores are weakly
 * ordered: call fence_store_nt() before the result is published.
 */
#pragma once

#include "kernel/lib/types.h"

/* Write a 64-byte, 64-byte-aligned line: two given words and six zeros. */
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
