/* Times in order, for medians and percentiles. */
#pragma once

#include "kernel/types.h"

/* Shell's order, gaps of 3x + 1: enough for some thousand numbers. */
static inline void sort_u64(u64 *value, u64 count)
{
	u64 gap = 1;

	while (gap < count / 3)
		gap = 3 * gap + 1;
	for (; gap > 0; gap /= 3) {
		for (u64 i = gap; i < count; i++) {
			const u64 v = value[i];
			u64 at = i;

			for (; at >= gap && value[at - gap] > v; at -= gap)
				value[at] = value[at - gap];
			value[at] = v;
		}
	}
}
