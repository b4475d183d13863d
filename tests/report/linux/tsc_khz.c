/*
 * Program that runs on the host before Linux is measured: the rate of its time stamp counter in
 * kHz, which is also that of its virtual machines. Told by tsc_early_khz=, Linux has a clock from
 * the beginning. Otherwise its clock begins when it has found a timer, and it takes pages of 1 GiB
 * out of memory before that.
 */
#include "nolib.h"

#define SAMPLE_NS 100000000UL

static u64 tsc(void)
{
	u64 low, high;

	__asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high) : : "memory");
	return high << 32 | low;
}

static int run(long argc, char **argv)
{
	const u64 began = now_ns(), ticks = tsc();
	u64 ns;

	while ((ns = now_ns() - began) < SAMPLE_NS)
		;
	print_number((tsc() - ticks) * 1000000 / ns, '\n');
	return 0;
}
