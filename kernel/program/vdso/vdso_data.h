/*
 * The page in front of the vDSO, which the kernel fills in and the vDSO reads: how clock_ns() reads
 * the TSC (arch/clock.h). Constant while a program runs.
 */
#pragma once

#include "kernel/lib/types.h"

struct vdso_data {
	u64 base_tsc, base_ns, mult; /* mult 0: the clock cannot be read here */
	u64 date_ns;                 /* what CLOCK_REALTIME is ahead */
	u32 cpu_in_rdtscp;           /* RDTSCP gives node << 12 | CPU */
};
