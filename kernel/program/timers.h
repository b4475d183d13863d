/*
 * The timer of a CPU, shared by a thread's sleep and by ITIMER_REAL.
 *
 * A CPU has one timer (arch/irq.h). ITIMER_REAL belongs to the CPU that set it, even when the
 * thread there ends. The timer of a CPU is set to the earlier of the two times. Its interrupt ends
 * a halt, after which the thread looks at the clock itself, and sends SIGALRM if that is due.
 *
 * A third use is the look for Ctrl-C, on the CPU that asked for it (timers_look_every()).
 *
 * Locks: calls that set ITIMER_REAL take turns at a lock. The interrupt takes none; it claims each
 * expiry by compare-and-swap.
 */
#pragma once

#include "kernel/lib/types.h"

/*
 * Have this CPU interrupted at `until_ns` (clock_ns()) or earlier. For thread_sleep(), which calls
 * it again if the time has not come, and timers_sleep_end() when it halts no longer. Returns 0, or
 * -ENODEV if the CPU has no timer. Context: handler.
 */
int timers_sleep_until(u64 until_ns);
void timers_sleep_end(void);

/* ITIMER_REAL: time until it expires next (0: it does not) and time between expiries (0: once). */
struct interval_timer {
	u64 left_ns, interval_ns;
};
struct interval_timer interval_timer_of(void);

/* Set it. Returns what it was. Context: ordinary. */
struct interval_timer interval_timer_set(const struct interval_timer *timer);

/* SIGALRM if it is due: what the interrupt does. Context: handler. */
void interval_timer_look(void);

/*
 * Call look() on this CPU every `interval_ns`, in interrupt context, until timers_end(). A machine
 * without a timer never calls it. Context: ordinary, before the program starts.
 */
void timers_look_every(u64 interval_ns, void (*look)(void));

/* The program has ended: no timer of it will fire. Context: ordinary. */
void timers_end(void);
