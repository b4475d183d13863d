/* Comparing ways by turns; see turns.h. */
#include "tests/bench/turns.h"

#include "tests/bench/sort.h"

void turns_add(struct turns *t, u64 ns)
{
	ns = MAX(ns, 1);
	t->ns[t->count % TURNS_KEPT] = ns;
	t->fastest = t->count == 0 ? ns : MIN(t->fastest, ns);
	t->count++;
}

u64 turns_median(const struct turns *t)
{
	u64 ns[TURNS_KEPT];
	const u64 kept = MIN(t->count, (u64)TURNS_KEPT);

	for (u64 i = 0; i < kept; i++)
		ns[i] = t->ns[i];
	return median_u64(ns, kept);
}

/* By how many thousandths `ours` is above `other`; 0 if it is below. */
static u64 above(u64 ours, u64 other)
{
	return ours > other ? (ours - other) * 1000 / other : 0;
}

u64 turns_behind(const struct turns *ours, const struct turns *other)
{
	u64 by_pairs[TURNS_KEPT];
	const u64 pairs = MIN(MIN(ours->count, other->count), (u64)TURNS_KEPT);

	if (pairs == 0)
		return 0;
	for (u64 i = 0; i < pairs; i++)
		by_pairs[i] = above(ours->ns[i], other->ns[i]);
	return MIN(above(ours->fastest, other->fastest), median_u64(by_pairs, pairs));
}
