/* CPUID, the features of this CPU, and its control registers. */
#pragma once

#include "kernel/lib/types.h"

/* The CPUID instruction (Intel SDM vol. 2A, "CPUID"; AMD APM vol. 3, appendix E). */
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
	return cpuid(leaf, subleaf);
}

struct cpu_features {
	char vendor[13], brand[49];
	bool intel, amd; /* amd: Hygon's CPUs, too */
	bool hypervisor, pages_1g, smep, smap, umip, x2apic, erms, clzero, invariant_tsc;
	bool rdrand, xsave;
	bool slow_strings; /* firmware has switched fast REP MOVS and STOS off */
	unsigned phys_bits;
};

/* Of the boot CPU; valid after arch_early_init(). */
extern struct cpu_features cpu_features;

void cpu_features_text(char *buf, size_t size); /* "nx smep ..." */
void cpu_features_detect(void);                 /* boot CPU, once */

/*
 * On every CPU: write CR4 whole with the features that the boot CPU found (SMEP, SMAP, UMIP,
 * machine checks) and the PAT with entry 1 = WC, and enable the vector registers.
 */
void cpu_features_init(void);
