/* The MTRRs of the CPUs: reading them, and making them alike on all CPUs. */
#pragma once

#include "arch/x86_64/cpu/mtrr.h"

/* This CPU's MTRRs. False, with none in use, if it lacks them. */
bool mtrrs_read(struct mtrrs *m);

/* The boot CPU's, which arch_reserve_memory() reads before other CPUs start. */
extern struct mtrrs mtrrs_boot;

/*
 * Compare this CPU's MTRRs with those of the boot CPU, and take those over where they differ. On
 * the CPU itself with interrupts off, once its traps are set up. mtrrs_settle() does it on hardware
 * only.
 */
void mtrrs_settle(void);
void mtrrs_take_over(void);

/*
 * Count the CPUs whose MTRRs differed from the boot CPU's, and name those that could not take them
 * over. Boot CPU, when all CPUs are started.
 */
void mtrrs_report(void);
