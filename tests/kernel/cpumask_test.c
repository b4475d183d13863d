/*
 * Sets of CPUs, for the number of CPUs that this machine has. The boot matrix runs this case with
 * one word and with many.
 */
#include "tests/kernel/test.h"

TEST(kernel_cpumask, words_hold_every_cpu)
{
	REQUIRE(cpu_count >= 1);
	EXPECT((u64)cpumask_words * 64 >= cpu_count);
	EXPECT(((u64)cpumask_words - 1) * 64 < cpu_count);
}
