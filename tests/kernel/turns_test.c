/*
 * How benchmarks compare two ways by turns (tests/bench/turns.h). Occasional disturbance of one of
 * them must not decide the comparison.
 */
#include "tests/bench/turns.h"

#include "tests/kernel/test.h"

/*
 * Turns of a way that takes `ns`, except that each `every`-th turn takes `late`. With `every` 0
 * there are no such turns.
 */
static struct turns *turns_of(struct turns *t, u64 ns, unsigned every, u64 late)
{
	t->count = 0;
	for (unsigned i = 0; i < 21; i++)
		turns_add(t, every && i % every == 0 ? late : ns);
	return t;
}

TEST(bench_turns, a_machine_that_was_busy_most_of_the_time_is_no_reason)
{
	static struct turns ours, other;

	turns_of(&ours, 5000, 7, 1000); /* as fast in the turns without disturbance */
	EXPECT_EQ(turns_behind(&ours, turns_of(&other, 1000, 0, 0)), 0);
}
