/* Sorting of times, for medians and percentiles, and their print. */
#pragma once

#include "kernel/lib/types.h"

/* The two arguments of "%llu.%03llu" and of "%llu.%02llu". */
#define THOUSANDTHS(value) (value) / 1000, (value) % 1000
#define HUNDREDTHS(value)  (value) / 100, (value) % 100

/* Shell sort with gaps of 3x + 1; fast enough for some thousand numbers. */
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

/* The value in the middle, 0 if there is none. The values are sorted in place. */
static inline u64 median_u64(u64 *value, u64 count)
{
	sort_u64(value, count);
	return count ? value[count / 2] : 0;
}
