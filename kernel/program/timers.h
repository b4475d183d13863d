/*
 * The timers of the program: ITIMER_REAL and those of timer_create(), and the look for Ctrl-C
 * (timers_call_every()).
 *
 * All of them are in one table under one lock (handler_lock.h). The CPU on which the program began
 * has one deadline for all (arch/timer.h), the earliest. Its interrupt sends the signals that are
 * due. A sleeping thread has a deadline of its own.
 *
 * Overruns: a timer has one signal pending at most. Expiries while it is pending are counted, and
 * the count goes with the signal (timer_getoverrun(2)). After each interrupt the program has its
 * CPU for a while, so that a short interval does not use it up; expiries meanwhile are counted.
 */
#pragma once

#include "kernel/lib/types.h"
#include "kernel/program/signal_abi.h"

/* ITIMER_REAL, number 0, is always there. timer_create() makes the others. */
enum { INTERVAL_TIMERS = 128 };

/* The program will run on this CPU: its deadline is the one for all timers. */
void timers_begin(void);

/*
 * Call fn() on this CPU every `interval_ns`, in interrupt context, until timers_end(). A machine
 * without a timer never calls it. Context: ordinary, before the program starts.
 */
void timers_call_every(u64 interval_ns, void (*fn)(void));

/* A signal with the code SI_TIMER is delivered, and with it its overruns. Context: handler. */
void timer_signal_taken(const struct signal_info *info);

/* Send the signals that are due: what the interrupt does. Context: handler. */
void timers_look(void);

/*
 * The program has ended: no timer of it will fire, and all are dropped. Context: ordinary, on the
 * CPU of timers_begin().
 */
void timers_end(void);
