/* Time since the kernel's entry, in nanoseconds. Monotonic on one CPU; between CPUs good to about a microsecond. */
#pragma once

#include "kernel/types.h"

u64 clock_ns(void);

/*
 * The same for intervals on one CPU: time that the CPU had for the caller. In a kernel that is clock_ns(); hosted, what other
 * processes of the host took of the CPU is not in it. Costs a system call there.
 */
u64 clock_cpu_ns(void);

/* Spin for at least this long, relaxing the CPU. Any context. */
void clock_delay_ns(u64 ns);
