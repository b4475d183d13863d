/* Clock calibration, in the two steps that start-up allows. */
#pragma once

#include "kernel/types.h"

/* Frequency from CPUID or, failing that, the PIT. Needs nothing else. Boot CPU. */
void clock_init(void);

/*
 * Once firmware tables are read: cross-check against HPET or the ACPI PM timer, and use them if nothing better was
 * there. Boot CPU, before others are started. `hpet`: mapped registers or NULL; `pm_timer_port`: I/O port or 0.
 */
void clock_refine(volatile void __iomem *hpet, u16 pm_timer_port, bool pm_timer_32bit);

/* HPET registers, bytes (IA-PC HPET specification 1.0a, 2.3.1), and the bit of HPET_CONFIG that lets it count. */
enum { HPET_CAPS = 0x00, HPET_PERIOD = 0x04, HPET_CONFIG = 0x10, HPET_COUNTER = 0xf0 };
enum { HPET_ENABLE = 1 };

u64 clock_tsc_hz(void);

/* A CPU's clock against the boot CPU's: ahead by offset_ns, give or take within_ns. */
struct clock_skew {
	cpu_t cpu;
	s64 offset_ns;
	u64 within_ns;
};

/* Boot CPU, others idle: the worst of those measured. Returns how many were. */
cpu_t clock_skew_measure(struct clock_skew *worst);
