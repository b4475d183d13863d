/*
 * The time for which provokers go on: see provoke.h.
 */
#include "tests/kernel/provoke.h"

#include <arch/clock.h>

#include "kernel/core/cmdline.h"

static u64 provoke_ms = 200;
OPTION_U64(test.provoke_ms, provoke_ms, 1, 3600000,
	   "milliseconds for which each case that provokes a race goes on");

struct provoke provoke_begin(void)
{
	return (struct provoke){.end = clock_ns() + provoke_ms * NS_PER_MS};
}

bool provoke_goes_on(const struct provoke *p)
{
	return clock_ns() < p->end;
}
