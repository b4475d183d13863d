/* This CPU's data, a variable of the thread that simulates it. */
#pragma once

#include <arch/timer.h>

#include "kernel/lib/types.h"

struct arch_percpu {
	struct timer timer[TIMER_OWNERS]; /* the explorer's; threads have no timer */
};

struct percpu;

extern _Thread_local struct percpu *host_this_cpu;

#define this_cpu_has_any(field, bits) ((this_cpu()->field & (bits)) != 0)

static inline struct percpu *this_cpu(void)
{
	return host_this_cpu;
}
