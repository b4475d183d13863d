/* The TSC as the machine's clock: its frequency, and the check against other clocks. */
#pragma once

#include "kernel/lib/types.h"

/*
 * Set the frequency from CPUID or, failing that, from the PIT. Nothing else need be initialised.
 * Boot CPU.
 */
void clock_init(void);

/*
 * Begin to measure the frequency against the HPET and the ACPI PM timer, once the firmware tables
 * are read. `hpet`: mapped registers or NULL; `pm_timer_port`: I/O port or 0. Boot CPU.
 */
void clock_refine_begin(volatile void __iomem *hpet, u16 pm_timer_port, bool pm_timer_32bit);

/*
 * End that measurement, after 2 ms at the earliest, and use the rate that clock_choice.h says. Boot
 * CPU, before other CPUs run, because they read the rate without a lock.
 */
void clock_refine_end(void);

/*
 * The PIT has done its part: it stops, whoever started it. Firmware lets it interrupt 18 times a
 * second. Boot CPU, when others have started: by instructions QEMU gives turns at these ticks.
 */
void clock_stop_pit(void);

/*
 * Each CPU notes its TSC, and by how much it was moved (TSC_ADJUST; 0 where it has no such
 * register), once its traps are set up; the boot CPU does so before others start. Then the boot CPU
 * says whether CPUs differ: by TSC_ADJUST, or by more than the time that starting took. Nothing is
 * changed, because boards with several packages may need it (Intel SDM vol. 3B, 18.17.3).
 */
void clock_note_tsc(void);
void clock_report_tscs(void);

u64 clock_tsc_hz(void);
