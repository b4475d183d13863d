/*
 * Which rate of the TSC is believed: what CPUID claims, or what other clocks measure. Pure.
 *
 *   CPUID 15h with a crystal     exact, and so is a hypervisor's leaf
 *   CPUID 15h without one        a ratio, times one of the crystals that Intel builds in
 *   CPUID 16h                    the name of the CPU's speed, up to 0.8% beside the TSC's rate
 *
 * Two measurements that agree outvote every claim. One measurement wins against a claim that is not
 * exact, and is rounded to the ratio times a crystal where that is near.
 *
 * Source: Intel SDM vol. 3B, 18.7.3 "Determining the Processor Base Frequency"; the crystals of 24,
 * 25, 19.2 and 38.4 MHz are in its table 18-85.
 */
#pragma once

#include "kernel/lib/types.h"

/* Sources agree if they differ by no more than this, besides the uncertainty of measuring. */
enum { CLOCK_AGREE_PPM = 200, CLOCK_MEASURES_MAX = 2 };

/* From CPUID; 0: not stated. */
struct tsc_facts {
	u32 numerator, denominator; /* TSC : crystal */
	u32 crystal_hz, base_mhz, hypervisor_khz;
};

struct tsc_claim {
	u64 hz; /* 0: none */
	bool exact;
	const char *source;
};

struct tsc_claim tsc_claim_of(const struct tsc_facts *facts);

struct tsc_measure {
	u64 hz;  /* 0: the clock stands still */
	u32 ppm; /* uncertainty */
};

bool tsc_agrees(u64 hz, const struct tsc_measure *measure);

/*
 * The rate, from the claim and from `count` measurements, the best clock's first. 0: nothing is
 * known.
 */
u64 tsc_choose(const struct tsc_facts *facts, const struct tsc_measure *measures, size_t count);

/*
 * By how many ticks, at least, another CPU's TSC is ahead of this one's (< 0: behind), if `read`
 * was read there between `begin` and `end` of this CPU. 0: nothing shows that they differ.
 */
static inline s64 tsc_ahead(u64 begin, u64 read, u64 end)
{
	if ((s64)(read - begin) < 0)
		return (s64)(read - begin);
	return (s64)(read - end) > 0 ? (s64)(read - end) : 0;
}
