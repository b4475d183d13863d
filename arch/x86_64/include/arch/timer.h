/*
 * The deadlines of a CPU, for the kernel; a program has timer_once() (<arch/irq.h>). Each deadline
 * has one owner on that CPU, and nobody else sets or clears it. A CPU waits for one thing at a
 * time, so all waits share one.
 */
#pragma once

#include <arch/irq.h>

enum timer_owner {
	TIMER_ONCE,    /* timer_once() */
	TIMER_WAIT,    /* the end of a halt: cpu_wait(), sleeping threads, the balloon's nap */
	TIMER_PROGRAM, /* the next timer of a program in ring 3 */
	TIMER_WATCH,   /* the watchdog, where no NMI ticks */
	TIMER_OWNERS
};

struct timer {
	u64 at; /* clock_ns(); 0: not set */
	irq_fn *fn;
	void *arg;
};

/*
 * Have this CPU interrupted at `at` (clock_ns()) or a little later, and fn(arg) called in the
 * interrupt, once. Replaces the owner's deadline if there is one. Returns 0, or -ENODEV without a
 * timer. Context: handler.
 */
int timer_set(enum timer_owner owner, u64 at, irq_fn *fn, void *arg);

/* Forget the owner's deadline on this CPU. Context: handler. */
void timer_clear(enum timer_owner owner);

/* For timer_set(): the interrupt alone is wanted, because it ends a halt. Context: handler. */
void timer_ends_halt(void *nothing);
