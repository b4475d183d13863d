/*
 * How benchmarks compare two ways by turns (tests/bench/turns.h). Occasional disturbance of one of
 * them must not decide the comparison.
 */
#include "tests/bench/turns.h"

#include "kernel/run/test.h"

/*
 * Turns of a way that takes `ns`, except that each `every`-th turn takes `late`. With `every` 0
 * there are no late turns.
 */
static struct turns *turns_of(struct turns *t, u64 ns, unsigned every, u64 late)
{
	t->count = 0;
	for (unsigned i = 0; i < 21; i++)
		turns_add(t, every && i % every == 0 ? late : ns);
	return t;
}

TEST(bench_turns, a_way_that_is_slower_in_every_turn_is_behind)
{
	static struct turns ours, other;

	EXPECT_EQ(turns_behind(turns_of(&ours, 1100, 0, 0), turns_of(&other, 1000, 0, 0)), 100);
	EXPECT_EQ(turns_behind(&other, &ours), 0);
	EXPECT_EQ(turns_behind(&ours, &ours), 0);
	EXPECT_EQ(turns_behind(turns_of(&ours, 1100, 3, 90000), turns_of(&other, 1000, 4, 70000)),
		  100);
}

TEST(bench_turns, one_quick_turn_of_the_other_is_no_reason)
{
	static struct turns ours, other;

	EXPECT_EQ(turns_behind(turns_of(&ours, 1000, 0, 0), turns_of(&other, 1000, 21, 500)), 0);
}

TEST(bench_turns, a_machine_that_was_busy_most_of_the_time_is_no_reason)
{
	static struct turns ours, other;

	turns_of(&ours, 5000, 7, 1000); /* as fast in the turns without disturbance */
	EXPECT_EQ(turns_behind(&ours, turns_of(&other, 1000, 0, 0)), 0);
}

TEST(bench_turns, medians_are_of_the_turns_that_are_kept)
{
	static struct turns t;

	t.count = 0;
	EXPECT_EQ(turns_median(&t), 0);
	for (u64 i = 0; i < 3 * TURNS_KEPT; i++)
		turns_add(&t, i < 2 * TURNS_KEPT ? 7 : 100 + i % 3);
	EXPECT_EQ(t.count, 3 * TURNS_KEPT);
	EXPECT_EQ(turns_median(&t), 101);
	EXPECT_EQ(t.fastest, 7);
	turns_add(&t, 0); /* a clock that stood still */
	EXPECT_EQ(t.fastest, 1);
}
