/*
 * Comparing two ways by turns that they took one after the other, on a machine that others disturb.
 *
 * What disturbs only ever adds, and it adds to both. So the fastest turns of each are compared, and the turns pair by pair, of
 * which the median counts. One way is behind the other only if both comparisons say so.
 */
#pragma once

#include "kernel/types.h"

enum { TURNS_KEPT = 256 };

/* Times of one way, the last TURNS_KEPT of them. Turn n of two ways was measured at about the same time. */
struct turns {
	u64 count, fastest; /* 0 and unset before the first */
	u64 ns[TURNS_KEPT];
};

void turns_add(struct turns *t, u64 ns);
u64 turns_median(const struct turns *t);

/* By how many thousandths `ours` takes longer than `other`, at least; 0 if it does not, or if either has no turn. */
u64 turns_behind(const struct turns *ours, const struct turns *other);
