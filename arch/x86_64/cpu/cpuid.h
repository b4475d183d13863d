/* The CPUID instruction (Intel SDM vol. 2A, "CPUID"; AMD APM vol. 3, appendix E). */
#pragma once

#include "kernel/lib/types.h"

struct cpuid {
	u32 eax, ebx, ecx, edx;
};

static inline struct cpuid cpuid_raw(u32 leaf, u32 subleaf)
{
	struct cpuid r;

	__asm__ volatile("cpuid"
			 : "=a"(r.eax), "=b"(r.ebx), "=c"(r.ecx), "=d"(r.edx)
			 : "a"(leaf), "c"(subleaf));
	return r;
}

/*
 * The leaf's answer, or zeros if this CPU has no such leaf. (For an unknown leaf Intel CPUs return
 * the data of the highest one.)
 */
static inline struct cpuid cpuid(u32 leaf, u32 subleaf)
{
	const u32 range = leaf & 0xffff0000;
	const u32 highest = cpuid_raw(range, 0).eax;

	if (highest < leaf || (highest & 0xffff0000) != range)
		return (struct cpuid){0};
	return cpuid_raw(leaf, subleaf);
}

/* cpuid() for readers that take a function (cpuid_fn); `ctx` is not used. */
static inline struct cpuid cpuid_own(u32 leaf, u32 subleaf, const void *ctx)
{
	(void)ctx;
	return cpuid(leaf, subleaf);
}
