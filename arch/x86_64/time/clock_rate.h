/*
 * How ticks of the TSC become nanoseconds, and a change of that which an NMI may interrupt.
 *
 *   slot[0]  [base_tsc base_ns mult hz]  <- now        the reader loads `now` once
 *   slot[1]  [base_tsc base_ns mult hz]                a change fills this one, then moves `now`
 *
 * An NMI handler that reads the clock (the watchdog, cpu_where(), samples) ends before the change
 * goes on. It therefore finds the old rate or the new one, and never has to wait. Code that a
 * change may overtake twice must not read: changes end before other CPUs start.
 */
#pragma once

#include <arch/atomic.h>

#include "kernel/lib/types.h"

/* ns = base_ns + (TSC - base_tsc) * mult / 2^32. With mult 0 the rate is not known yet. */
struct clock_rate {
	u64 base_tsc, base_ns, mult;
	u64 hz;
};

struct clock_rates {
	const struct clock_rate *now; /* one of the slots */
	struct clock_rate slot[2];
};

static inline const struct clock_rate *clock_rate_now(const struct clock_rates *rates)
{
	return atomic_load_acquire(&rates->now);
}

/* The time at `tsc`; ticks before base_tsc count as none. */
static inline u64 clock_rate_ns(const struct clock_rate *rate, u64 tsc)
{
	const u64 ticks = tsc - rate->base_tsc;

	if ((s64)ticks <= 0)
		return rate->base_ns;
	return rate->base_ns + (u64)(((unsigned __int128)ticks * rate->mult) >> 32);
}

/*
 * From `tsc` on, the TSC counts at `hz`. The time does not jump. Where no rate was known, the new
 * one holds from base_tsc on. Boot CPU, before other CPUs run.
 */
static inline void clock_rate_change(struct clock_rates *rates, u64 tsc, u64 hz)
{
	const struct clock_rate *old = rates->now;
	struct clock_rate *next = &rates->slot[old == &rates->slot[0]];
	struct clock_rate until = *old;

	next->hz = hz;
	next->mult = (NS_PER_S << 32) / hz;
	if (until.mult == 0)
		until.mult = next->mult;
	next->base_ns = clock_rate_ns(&until, tsc);
	next->base_tsc = tsc;
	atomic_store_release(&rates->now, next);
}
