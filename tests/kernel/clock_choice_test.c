/*
 * The TSC's rate on other machines, from what their CPUID says (leaves 15h and 16h as dumps of real
 * CPUs show them) and from clocks that measure it, well or badly.
 */
#include "arch/x86_64/time/clock_choice.h"

#include "tests/kernel/test.h"

#define MHZ 1000000ULL
#define KHZ 1000ULL

/* Skylake client, Skylake server, Goldmont, Tiger Lake, and one that states its crystal. */
static const struct tsc_facts i7_6700 = {.numerator = 284, .denominator = 2, .base_mhz = 3400},
			      xeon_6140 = {.numerator = 184, .denominator = 2, .base_mhz = 2300},
			      n3350 = {.numerator = 171, .denominator = 3, .base_mhz = 1100},
			      core_2 = {0}, named_only = {.base_mhz = 2800},
			      i7_1165g7 = {.numerator = 146,
					   .denominator = 2,
					   .crystal_hz = 38400000,
					   .base_mhz = 2800};

static u64 choose(const struct tsc_facts *facts, u64 hpet, u64 pm_timer)
{
	const struct tsc_measure measures[] = {{hpet, 20}, {pm_timer, 60}};

	return tsc_choose(facts, measures, ARRAY_LEN(measures));
}

TEST(arch_clock, the_name_of_a_speed_is_not_its_rate)
{
	EXPECT_EQ(tsc_claim_of(&i7_6700).hz, 3408 * MHZ);
	EXPECT_EQ(tsc_claim_of(&xeon_6140).hz, 2300 * MHZ);
	EXPECT_EQ(tsc_claim_of(&n3350).hz, 1094400 * KHZ);
	EXPECT_EQ(tsc_claim_of(&i7_1165g7).hz, 2803200 * KHZ);
	EXPECT_EQ(tsc_claim_of(&named_only).hz, 2800 * MHZ);
	EXPECT_EQ(tsc_claim_of(&core_2).hz, 0);
	EXPECT(tsc_claim_of(&i7_1165g7).exact);
	EXPECT(!tsc_claim_of(&i7_6700).exact);
	EXPECT(!tsc_claim_of(&named_only).exact);
}

TEST(arch_clock, a_measurement_wins_against_a_name)
{
	EXPECT_EQ(choose(&named_only, 2803210 * KHZ, 0), 2803210 * KHZ);
	EXPECT_EQ(choose(&core_2, 2666100 * KHZ, 2666200 * KHZ), 2666100 * KHZ);
	EXPECT_EQ(choose(&core_2, 0, 2666200 * KHZ), 2666200 * KHZ);
	/* and is rounded where the ratio and a crystal are known */
	EXPECT_EQ(choose(&i7_6700, 3408100 * KHZ, 3407900 * KHZ), 3408 * MHZ);
	EXPECT_EQ(choose(&i7_6700, 3420 * MHZ, 3420 * MHZ), 3420 * MHZ);
	EXPECT_EQ(choose(&named_only, 0, 0), 2800 * MHZ);
}

TEST(arch_clock, two_clocks_that_agree_outvote_cpuid)
{
	/* an emulator that shows a Tiger Lake's CPUID and counts at another rate */
	EXPECT_EQ(choose(&i7_1165g7, 233600 * KHZ, 233610 * KHZ), 233600 * KHZ);
	/* one clock, or two that disagree, do not */
	EXPECT_EQ(choose(&i7_1165g7, 233600 * KHZ, 0), 2803200 * KHZ);
	EXPECT_EQ(choose(&i7_1165g7, 0, 233600 * KHZ), 2803200 * KHZ);
	EXPECT_EQ(choose(&i7_1165g7, 233600 * KHZ, 2803200 * KHZ), 2803200 * KHZ);
	EXPECT_EQ(choose(&i7_1165g7, 2803300 * KHZ, 2803300 * KHZ), 2803200 * KHZ);
}

TEST(arch_clock, sources_agree_within_200_ppm_and_their_uncertainty)
{
	const struct tsc_measure sharp = {1000 * MHZ, 0}, vague = {1000 * MHZ, 300}, dead = {0, 0};

	EXPECT(tsc_agrees(1000200 * KHZ, &sharp));
	EXPECT(!tsc_agrees(1000300 * KHZ, &sharp));
	EXPECT(!tsc_agrees(999700 * KHZ, &sharp));
	EXPECT(tsc_agrees(1000500 * KHZ, &vague));
	EXPECT(!tsc_agrees(1000600 * KHZ, &vague));
	EXPECT(!tsc_agrees(1000 * MHZ, &dead));
	EXPECT(!tsc_agrees(0, &dead));
}

/* What CPU 0 sees of a CPU that starts while its own TSC goes from 5000 to 9000. */
TEST(arch_clock, a_tsc_that_was_not_read_between_the_two_looks_of_cpu_0_is_apart)
{
	EXPECT_EQ(tsc_ahead(5000, 5000, 9000), 0);
	EXPECT_EQ(tsc_ahead(5000, 9000, 9000), 0);
	EXPECT_EQ(tsc_ahead(5000, 9001, 9000), 1);
	EXPECT_EQ(tsc_ahead(5000, 4999, 9000), -1);
	EXPECT_EQ(tsc_ahead(5000, 0, 9000), -5000); /* it began at 0 */
	EXPECT_EQ(tsc_ahead(5000, 1ULL << 62, 9000), (1ULL << 62) - 9000);
	/* a TSC that firmware set shortly below its end */
	EXPECT_EQ(tsc_ahead(-100ULL, 20, 50), 0);
	EXPECT_EQ(tsc_ahead(-100ULL, -101ULL, 50), -1);
	EXPECT_EQ(tsc_ahead(-100ULL, 60, 50), 10);
}
