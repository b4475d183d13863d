/* Time since the kernel's entry, in nanoseconds. Monotonic on one CPU; between CPUs good to about a microsecond. */
#pragma once

#include "kernel/types.h"

u64 clock_ns(void);

/*
 * The time for which this CPU has worked for the caller, to measure intervals on one CPU. In a kernel that is clock_ns(). Hosted, it
 * leaves out the time that the host gave to other processes, and costs a system call.
 */
u64 clock_cpu_ns(void);

/* Spin for at least this long, relaxing the CPU. Any context. */
void clock_delay_ns(u64 ns);
