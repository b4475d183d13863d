/*
 * Comparing two ways by turns that they took one after the other, on a machine that other processes
 * disturb.
 *
 * A disturbance only ever adds time, and it adds to both ways. Two comparisons are made: the
 * fastest turns of each way, and the turns pair by pair, of which the median counts. One way is
 * behind the other only if both comparisons say so.
 */
#pragma once

#include "kernel/lib/types.h"

enum { TURNS_KEPT = 256 };

/*
 * Times of one way, of which the last TURNS_KEPT are kept. The n-th turns of two ways were measured
 * at about the same time.
 */
struct turns {
	u64 count, fastest; /* fastest is not valid while count is 0 */
	u64 ns[TURNS_KEPT];
};

void turns_add(struct turns *t, u64 ns);
u64 turns_median(const struct turns *t);

/*
 * By how many thousandths `ours` takes longer than `other`, at least; 0 if it does not, or if
 * either has no turn.
 */
u64 turns_behind(const struct turns *ours, const struct turns *other);
