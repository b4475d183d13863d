/* What this CPU has, and its control registers. */
#pragma once

#include "kernel/types.h"

struct cpu_features {
	char vendor[13], brand[49];
	bool hypervisor, pages_1g, smep, smap, umip, x2apic, erms, fsrm, clzero, invariant_tsc;
	bool slow_strings; /* firmware has switched fast REP MOVS and STOS off */
	unsigned phys_bits;
};

/* Of the boot CPU; valid after arch_early_init(). */
extern struct cpu_features cpu_features;

void cpu_features_text(char *buf, size_t size); /* "nx smep ..." */
void cpu_features_detect(void); /* boot CPU, once */

/* Another word than the build's in front of return addresses (stack_guard.c). Boot CPU, first of all. */
void stack_guard_choose(void);

/* Every CPU: CR4 written whole with what the boot CPU found (SMEP, SMAP, UMIP, machine checks), PAT with entry 1 = WC.
 */
void cpu_features_init(void);

/* vector.c: vector registers for programs linked to the kernel. Every CPU, once CR4 allows XSETBV. */
bool vector_has_xsave(void);
void vector_init_cpu(void);
