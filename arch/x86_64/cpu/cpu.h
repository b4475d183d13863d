/* Features of this CPU, and its control registers. */
#pragma once

#include "kernel/lib/types.h"

struct cpu_features {
	char vendor[13], brand[49];
	bool intel, amd; /* amd: Hygon's CPUs, too */
	bool hypervisor, pages_1g, smep, smap, umip, x2apic, erms, fsrm, clzero, invariant_tsc;
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
