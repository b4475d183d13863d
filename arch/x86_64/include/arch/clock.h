/* Time since the kernel's entry, in nanoseconds. Monotonic on one CPU; between CPUs good to about a microsecond. */
#pragma once

#include "kernel/types.h"

u64 clock_ns(void);

/* Spin for at least this long, relaxing the CPU. Any context. */
void clock_delay_ns(u64 ns);
