/* Numbers that are alike in every run: Marsaglia, "Xorshift RNGs", 2003. The state is any but 0. */
#pragma once

#include "kernel/types.h"

static inline u64 next_random(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}
