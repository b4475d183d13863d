/* The MTRRs of the CPUs: reading them, and making them alike on all CPUs. */
#pragma once

#include "arch/x86_64/cpu/mtrr.h"

/* This CPU's MTRRs. False, with none in use, if it lacks them. */
bool mtrrs_read(struct mtrrs *m);

/*
 * Compare this CPU's MTRRs with those of the boot CPU, which calls first, and take those over where
 * they differ. On the CPU itself with interrupts off, once its traps are set up.
 */
void mtrrs_settle(void);

/* Name CPUs whose MTRRs differed from the boot CPU's. Boot CPU, when all CPUs are started. */
void mtrrs_report(void);
