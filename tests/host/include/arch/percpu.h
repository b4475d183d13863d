/* This CPU's data, a variable of the thread that simulates it. */
#pragma once

#include "kernel/lib/types.h"

struct arch_percpu {
	u8 unused; /* threads have theirs in struct host_cpu (tests/host/host.h) */
};

struct percpu;

extern _Thread_local struct percpu *host_this_cpu;

#define this_cpu_has_any(field, bits) ((this_cpu()->field & (bits)) != 0)

static inline struct percpu *this_cpu(void)
{
	return host_this_cpu;
}
