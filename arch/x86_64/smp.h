/*
 * Starting the other CPUs, arch-internal part; the rest is arch_cpus_start() in <arch/boot.h>.
 */
#pragma once

#include "kernel/types.h"

/*
 * How far a CPU has come. It moves itself on with compare-and-swap up to AP_JOINING; until then the boot CPU may move
 * it to AP_GIVEN_UP, and whoever loses that race obeys: a CPU given up parks for good.
 */
enum ap_stage {
	AP_SILENT,      /* told to start; nothing heard */
	AP_CLAIMED,     /* in 64-bit code, has found its index by its APIC ID (trampoline.S) */
	AP_DESCRIPTORS, /* own stack, descriptor tables, traps are caught */
	AP_FEATURES,    /* control registers as the boot CPU's */
	AP_APIC,        /* can be interrupted */
	AP_JOINING,     /* moves to the kernel's page tables; cannot be given up any more */
	AP_ONLINE,
	AP_GIVEN_UP,
	AP_EXCLUDED, /* never told to start: no address, or no memory for it */
};

/* For trampoline.S: where an AP finds itself and its stack, all indexed by CPU. */
extern u8 *ap_stages;
extern u32 *ap_ids;
extern void **ap_stacks;
extern cpu_t ap_count;
extern u32 ap_unknown;        /* CPUs that came and are not in the list */
extern u32 ap_x2apic;         /* 1: switch to x2APIC mode before reading the ID */
extern volatile void __iomem *ap_apic; /* registers in xAPIC mode */

/* C entry of an AP, on its own stack, interrupts off, on the start-up page tables. */
__noreturn void ap_start(cpu_t cpu);
