/*
 * Clearing memory, hosted: the kernel's own choice and instructions (arch/x86_64/clear/clear.c,
 * clear_insns.S) with the features of this process's CPU. `make bench WHAT=native` therefore
 * measures them.
 *
 * The sanitizers cannot see into assembly. Under them each variant is a plain C access to its whole
 * extent, so that a clear beyond it, or in a race, is reported.
 */
#include <cpuid.h>

#include "arch/x86_64/clear/clear.h"
#include "arch/x86_64/cpu/cpu.h"
#include "tests/host/host.h"

struct cpu_features cpu_features;

/* A process cannot read MISC_ENABLE, so CPUID's claims are taken as they are. */
void host_features_init(void)
{
	unsigned a, b, c, d;

	if (__get_cpuid(0, &a, &b, &c, &d)) {
		memcpy(cpu_features.vendor, &b, 4);
		memcpy(cpu_features.vendor + 4, &d, 4);
		memcpy(cpu_features.vendor + 8, &c, 4);
	}
	if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
		cpu_features.erms = b >> 9 & 1;
	if (__get_cpuid(0x80000008, &a, &b, &c, &d))
		cpu_features.clzero = b & 1;
	clear_insns_choose();
}

#ifdef HOST_SANITIZED
#define STAND_IN(name)                                                                             \
	void name(void *addr, size_t bytes);                                                       \
	void name(void *addr, size_t bytes)                                                        \
	{                                                                                          \
		memset(addr, 0, bytes);                                                            \
	}

STAND_IN(clear_orig)
STAND_IN(clear_rep)
STAND_IN(clear_erms)
STAND_IN(clear_clzero)
STAND_IN(clear_nt)
#endif
