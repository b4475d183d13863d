/* The TSC as the machine's clock: its frequency, and the check against other clocks. */
#pragma once

#include "arch/x86_64/time/clock_sources.h"

/*
 * Set the frequency from CPUID or, failing that, from the PIT. Nothing else need be initialised.
 * Boot CPU.
 */
void clock_init(void);

/*
 * Check the frequency against the HPET and the ACPI PM timer once the firmware tables are read. A
 * clock that disagrees replaces the rate, unless CPUID stated it exactly. Boot CPU, before other
 * CPUs are started. `hpet`: mapped registers or NULL; `pm_timer_port`: I/O port or 0.
 */
void clock_refine(volatile void __iomem *hpet, u16 pm_timer_port, bool pm_timer_32bit);

u64 clock_tsc_hz(void);
