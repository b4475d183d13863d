/*
 * Time since the kernel's entry, in nanoseconds. Monotonic on one CPU; two CPUs agree to about a
 * microsecond.
 */
#pragma once

#include "kernel/lib/types.h"

u64 clock_ns(void);

/*
 * Time that this CPU has spent on the caller, for measuring intervals on one CPU. In a kernel this
 * is clock_ns(). Hosted, it leaves out the time that the host gave to other processes, and costs a
 * system call.
 */
u64 clock_cpu_ns(void);

/* Spin for at least this long, relaxing the CPU. Any context. */
void clock_delay_ns(u64 ns);
