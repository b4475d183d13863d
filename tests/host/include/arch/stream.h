/*
 * The hosted build runs on x86-64 too and uses the same instructions, except where a sanitizer has
 * to see the stores.
 */
#pragma once

#include "kernel/lib/types.h"

#ifdef HOST_SANITIZED
static inline void stream_line(void *line, u64 word0, u64 word1)
{
	u64 *word = line;

	word[0] = word0;
	word[1] = word1;
	for (unsigned i = 2; i < 8; i++)
		word[i] = 0;
}
#else
#include "arch/x86_64/include/arch/stream.h"
#endif
