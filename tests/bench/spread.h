/*
 * Statistics of repeated runs: the median, the scatter, and whether two rows differ at all.
 *
 * The standard deviation is that of a sample (n - 1), as in the published tables. Two rows differ
 * if their medians lie further apart than both standard deviations together. A smaller difference
 * is noise, and no table prints it.
 */
#pragma once

#include "tests/bench/sort.h"

struct spread {
	u64 median, sd, low, high;
	unsigned runs;
};

static inline u64 spread_root(u64 x)
{
	u64 root = 0;

	for (u64 bit = 1ULL << 31; bit; bit >>= 1)
		if ((root + bit) * (root + bit) <= x)
			root += bit;
	return root;
}

/* Statistics of `runs` values, which are sorted in place. All zeroes if there are none. */
static inline struct spread spread_of(u64 *value, unsigned runs)
{
	u64 mean = 0, squares = 0, unit;

	if (runs == 0)
		return (struct spread){0};
	sort_u64(value, runs);
	for (unsigned i = 0; i < runs; i++)
		mean += value[i] / runs;
	unit = MAX(value[runs - 1] >> 28, 1); /* so that squares of up to 16 runs fit */
	for (unsigned i = 0; i < runs; i++) {
		const u64 off = (value[i] > mean ? value[i] - mean : mean - value[i]) / unit;

		squares += off * off;
	}
	return (struct spread){.median = (value[(runs - 1) / 2] + value[runs / 2]) / 2,
			       .sd = runs > 1 ? spread_root(squares / (runs - 1)) * unit : 0,
			       .low = value[0],
			       .high = value[runs - 1],
			       .runs = runs};
}

static inline bool spread_differ(struct spread a, struct spread b)
{
	return (a.median > b.median ? a.median - b.median : b.median - a.median) > a.sd + b.sd;
}
