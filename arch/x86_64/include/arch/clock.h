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

/*
 * How clock_ns() reads the TSC: base_ns + (TSC - base_tsc) * mult / 2^32, and base_ns before
 * base_tsc. Constant once CPUs are started. clock_tsc() returns false if the clock is not the TSC,
 * or not one that code outside of the kernel can read.
 */
struct clock_tsc {
	u64 base_tsc, base_ns, mult;
};
bool clock_tsc(struct clock_tsc *out);
