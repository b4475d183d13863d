/* The difference between the TSCs of CPUs. */
#pragma once

#include "arch/x86_64/time/clock_sources.h"

/*
 * Measure the CPUs against the boot CPU and store the worst in *worst. Returns how many were
 * measured. Boot CPU, with the others idle.
 */
cpu_t clock_skew_measure(struct clock_skew *worst);
