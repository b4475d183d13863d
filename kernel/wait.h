/*
 * Bounded waits. Nothing in Ashlar spins without a deadline that names what it waited for.
 *
 *	struct wait wait = wait_begin(wait_deadline_cpus(), "shootdown acknowledgements");
 *	while (!done())
 *		wait_spin(&wait, cpu);
 *
 * A wait past its deadline says once per deadline what is late and which CPU (CPU_NONE if none in particular) and keeps
 * waiting; after ten deadlines it panics, or, if what it waits for takes as long as it takes (soft), after hang= seconds
 * (kernel/watchdog.h). wait_spin() relaxes the CPU and serves its mailbox.
 */
#pragma once

#include "kernel/types.h"

/* Deadline that healthy CPUs meet even when many virtual ones share few real ones: grows with the number of CPUs. */
u64 wait_deadline_cpus(void);
extern u64 wait_ms; /* wait_ms= */

struct wait {
	const char *what;
	u64 start, deadline_ns; /* of one period */
	u32 late;               /* periods missed so far */
	bool soft;              /* bounded by hang= only; or the caller looks at `late` and gives up before */
	bool endless;           /* not even by that: for the end of a program's own work */
	u64 spins;              /* stands in for time before the clock runs */
	u32 ahead;              /* in a queue: how many come first; 0: it is no queue, or not known */
};

struct wait wait_begin(u64 deadline_ns, const char *what);
void wait_spin(struct wait *wait, cpu_t culprit);

/*
 * The latest report of a late wait, for people and tests: what for, from whom (CPU_NONE: nobody in particular), and where
 * that CPU was, innermost first. `reports` counts them, atomically; the rest is of the last.
 */
enum { WAIT_WHERE_MAX = 12 };
struct wait_report {
	u32 reports;
	cpu_t culprit;
	const char *what;
	size_t frames;
	virt_t where[WAIT_WHERE_MAX];
};
extern struct wait_report wait_last_report;

/* Print what cpu_where() answered, with symbols; 0 frames: that there was no answer. Any context. */
void wait_print_where(cpu_t cpu, const virt_t *where, size_t frames);
