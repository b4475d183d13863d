/*
 * The timer of a CPU, shared by a thread's sleep and by ITIMER_REAL.
 *
 * A CPU has one timer (arch/irq.h). ITIMER_REAL belongs to the CPU that set it, even when the
 * thread there ends. The timer of a CPU is set to the earlier of the two times. When it fires it
 * wakes the thread, which looks at the clock itself, and sends SIGALRM if that is due.
 *
 * Locks: calls that set ITIMER_REAL take turns at a lock. The interrupt takes none; it claims each
 * expiry by compare-and-swap.
 */
#pragma once

#include "kernel/lib/types.h"

/*
 * Have the thread of this CPU woken at `until_ns` (clock_ns()) or earlier. For thread_sleep(),
 * which calls it again if the time has not come. Returns 0, or -ENODEV if the CPU has no timer.
 * Context: handler.
 */
int timers_sleep_until(u64 until_ns);

/* ITIMER_REAL: time until it expires next (0: it does not) and time between expiries (0: once). */
struct interval_timer {
	u64 left_ns, interval_ns;
};
struct interval_timer interval_timer_of(void);

/* Set it. Returns what it was. Context: ordinary. */
struct interval_timer interval_timer_set(const struct interval_timer *timer);

/* SIGALRM if it is due: what the interrupt does. Context: handler. */
void interval_timer_look(void);

/* The program has ended: no timer of it will fire. Context: ordinary. */
void timers_end(void);
