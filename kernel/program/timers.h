/*
 * The timers of the program: ITIMER_REAL and those of timer_create(), and the look for Ctrl-C
 * (timers_call_every()).
 *
 * All of them are in one table under one lock (handler_lock.h). The CPU on which the program began
 * has one deadline for all (arch/timer.h), the earliest. Its interrupt sends the signals that are
 * due. A sleeping thread has a deadline of its own.
 *
 * Overruns: a timer has one signal pending at most. Expiries while it is pending are counted, and
 * the count goes with the signal (timer_getoverrun(2)). Expiries closer than 50 us are counted,
 * too, so that a short interval does not use up its CPU.
 */
#pragma once

#include "kernel/lib/types.h"
#include "kernel/program/signal_abi.h"

/* ITIMER_REAL is always there. timer_create() makes the others, with the numbers that follow. */
enum { INTERVAL_TIMER_REAL = 0, INTERVAL_TIMERS = 128 };

/* Effect of an expiry. */
struct timer_event {
	/* the numbers of SIGEV_SIGNAL, NONE and THREAD_ID */
	enum { TIMER_SENDS_TO_PROGRAM, TIMER_SENDS_NOTHING, TIMER_SENDS_TO_THREAD = 4 } how;
	u32 thread; /* id */
	int signal;
	bool names_itself; /* `value` is the timer's number */
	u64 value;
	bool calendar; /* for timer_calls.c: times are of CLOCK_REALTIME */
};

/* Returns the number of a new timer, or -EAGAIN if there are too many. Context: ordinary. */
int interval_timer_make(const struct timer_event *event);

/* Returns 0, or -EINVAL if timer_create() made no such timer. Context: ordinary. */
int interval_timer_drop(int id);

struct interval_timer {
	u64 left_ns, interval_ns; /* to the next expiry (0: none), and between expiries (0: once) */
	bool made;                /* by timer_create() */
	bool calendar;            /* of its event */
	u32 overruns;             /* counted with the signal that was delivered last */
};
/* All 0 for a number that is no timer. */
struct interval_timer interval_timer_of(int id);

/*
 * Set the times of a timer; *old is what it was. Returns 0, or -EINVAL if there is none, because
 * another thread has dropped it. Context: ordinary.
 */
int interval_timer_set(int id, const struct interval_timer *timer, struct interval_timer *old);

/* The program will run on this CPU: its deadline is the one for all timers. */
void timers_begin(void);

/*
 * Call fn() on this CPU every `interval_ns`, in interrupt context, until timers_end(). A machine
 * without a timer never calls it. Context: ordinary, before the program starts.
 */
void timers_call_every(u64 interval_ns, void (*fn)(void));

/* A signal with the code SI_TIMER is delivered: it receives its overruns. Context: handler. */
void interval_timer_signal_taken(struct signal_info *info);

/* Send the signals that are due: what the interrupt does. Context: handler. */
void timers_look(void);

/*
 * The program has ended: no timer of it will fire, and all are dropped. Context: ordinary, on the
 * CPU of timers_begin().
 */
void timers_end(void);
