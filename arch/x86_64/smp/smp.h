/*
 * Starting the other CPUs, arch-internal part; the rest is arch_cpus_start() in <arch/boot.h>.
 */
#pragma once

#include "kernel/lib/types.h"

/*
 * How far a CPU has come. The CPU advances its own stage by compare-and-swap up to AP_JOINING.
 * Until then the boot CPU may set it to AP_GIVEN_UP by the same means. A CPU that was given up
 * parks for good; the boot CPU waits for one that is already joining.
 */
enum ap_stage {
	AP_SILENT,      /* asked to start; no answer yet */
	AP_CLAIMED,     /* in 64-bit code, has found its index by its APIC ID (trampoline.S) */
	AP_DESCRIPTORS, /* has its own stack and descriptor tables; traps are caught */
	AP_FEATURES,    /* control registers are set as on the boot CPU */
	AP_APIC,        /* can be interrupted */
	AP_JOINING,     /* moving to the kernel's page tables; can no longer be given up */
	AP_ONLINE,
	AP_GIVEN_UP,
	AP_EXCLUDED, /* never asked to start, for want of an address or of memory */
};

/* For trampoline.S: the tables in which an AP finds its index and its stack, all indexed by CPU. */
extern u8 *ap_stages;
extern u32 *ap_ids;
extern void **ap_stacks;
extern u32 ap_root; /* start-up page tables, below 4 GiB: smp_page.c */
/* registers in xAPIC mode; NULL: x2APIC mode, which is entered before the ID is read */
extern volatile void __iomem *ap_apic;

/* C entry of an AP, on its own stack, interrupts off, on the start-up page tables. */
__noreturn void ap_start(cpu_t cpu);
