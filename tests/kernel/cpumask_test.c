/*
 * Sets of CPUs, for the number of CPUs that this machine has. The boot matrix runs these cases with
 * one word and with many.
 */
#include "kernel/lib/cpumask.h"
#include "kernel/run/test.h"

enum { WORDS_MAX = 128 };

static u64 words_a[WORDS_MAX], words_b[WORDS_MAX];
static struct cpumask a = {.words = words_a}, b = {.words = words_b};

static bool start(void)
{
	if (cpu_mask_words() > WORDS_MAX)
		return false;
	cpumask_zero(&a);
	cpumask_zero(&b);
	return true;
}

TEST(kernel_cpumask, words_hold_every_cpu)
{
	REQUIRE(cpu_count >= 1);
	EXPECT((u64)cpu_mask_words() * 64 >= cpu_count);
	EXPECT(((u64)cpu_mask_words() - 1) * 64 < cpu_count);
}

TEST(kernel_cpumask, each_cpu_is_itself_alone)
{
	REQUIRE(start());
	for (cpu_t cpu = 0; cpu < cpu_count; cpu++) {
		cpumask_set(&a, cpu);
		EXPECT(cpumask_test(&a, cpu));
		EXPECT_EQ(cpumask_weight(&a), 1);
		EXPECT_EQ(cpumask_next(&a, 0), cpu);
		EXPECT_EQ(cpumask_next(&a, cpu), cpu);
		EXPECT_EQ(cpumask_next(&a, cpu + 1), CPU_NONE);
		cpumask_clear(&a, cpu);
		EXPECT_EQ(cpumask_weight(&a), 0);
	}
	EXPECT_EQ(cpumask_next(&a, 0), CPU_NONE);
}

TEST(kernel_cpumask, foreach_visits_in_order_and_once)
{
	cpu_t cpu, expected = 0, visits = 0;

	REQUIRE(start());
	for (cpu = 0; cpu < cpu_count; cpu += 3)
		cpumask_set_atomic(&a, cpu);
	cpumask_copy(&b, &a);
	cpumask_foreach(cpu, &b) {
		EXPECT_EQ(cpu, expected);
		expected += 3;
		visits++;
	}
	EXPECT_EQ(visits, DIV_ROUND_UP(cpu_count, 3));
	EXPECT_EQ(cpumask_weight(&b), visits);
}

TEST(kernel_cpumask, full_set_and_copies_are_separate)
{
	REQUIRE(start());
	for (cpu_t cpu = 0; cpu < cpu_count; cpu++)
		cpumask_set(&a, cpu);
	EXPECT_EQ(cpumask_weight(&a), cpu_count);
	cpumask_copy(&b, &a);
	cpumask_clear(&b, cpu_count - 1);
	EXPECT(cpumask_test(&a, cpu_count - 1));
	EXPECT_EQ(cpumask_weight(&b), cpu_count - 1);
	cpumask_zero(&a);
	EXPECT_EQ(cpumask_weight(&a), 0);
}
