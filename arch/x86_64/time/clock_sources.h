/* Types for clock calibration: HPET registers and the offset of a CPU's clock. */
#pragma once

#include "kernel/lib/types.h"

/*
 * HPET registers, in bytes (IA-PC HPET specification 1.0a, 2.3.1), and the bit of HPET_CONFIG that
 * makes it count.
 */
enum { HPET_CAPS = 0x00, HPET_PERIOD = 0x04, HPET_CONFIG = 0x10, HPET_COUNTER = 0xf0 };
enum { HPET_ENABLE = 1 };

/* A CPU's clock against the boot CPU's: it is ahead by offset_ns, give or take within_ns. */
struct clock_skew {
	cpu_t cpu;
	s64 offset_ns;
	u64 within_ns;
};
