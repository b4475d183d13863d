/*
 * Bounded waits. Nothing in Ashlar spins without a deadline that names what it waited for.
 *
 *	struct wait wait = wait_begin(WAIT_ANSWER, "shootdown acknowledgements");
 *	while (!done())
 *		wait_spin(&wait, cpu);
 *
 * A wait past its deadline says once per period what is late and which CPU (CPU_NONE if none in particular) and keeps
 * waiting. It panics after wait_bound() periods in a row in which nothing moved, or, if what it waits for takes as long as it takes
 * (soft), after hang= seconds (kernel/watchdog.h). wait_spin() relaxes the CPU and serves its mailbox.
 *
 * Levels
 *
 * Every wait names its level. The work that a wait waits for may itself wait, but only at levels below. So waits nest in one order,
 * like locks by rank, and a circle of waits is a broken rule instead of a hang. wait_spin() asserts this for the waits of one
 * CPU, in every build: between two looks of a wait, the CPU has begun no other wait of its level or above. Soft waits are free to: they
 * have no bound that an inner one could outlast, and a request for memory between two looks may go through all of it again.
 *
 * Bounds and progress
 *
 * The bound of each level is twice that of the level below. A period counts only if nothing moved in it. These things move:
 *
 *   - a CPU begins a wait of a lower level, or finishes a piece of work of a lower level (wait_moved()), or goes on with a wait of a
 *     lower level because something moved for that one; only those of the CPU waited for if it is known, else of all others
 *   - the queue, of a lock
 *   - the CPU waited for, where a wait is for one CPU after the other
 *
 * So a wait lasts as long as the work below it goes on, and one that hangs ends before those that wait for it: the CPU that begins it
 * has moved at that moment, and half of the bound of every outer wait is left for what the CPU did before without a wait.
 *
 * No wait is extended for ever. CPUs that wait in a circle, or for a CPU that hangs, begin nothing and finish nothing, and
 * waits of one level do not count for each other. Where other CPUs go on, hang= seconds end a wait that was ever extended.
 */
#pragma once

#include "kernel/types.h"

/* What is waited for, innermost first: each is waited for by the work of those after it, never the other way round. */
enum wait_level {
	WAIT_LOCK,    /* a turn at a lock: whoever holds one waits for nothing but a lock of higher rank */
	WAIT_ANSWER,  /* a CPU that is asked: a call, a flush; a function that is called may take a lock */
	WAIT_ROUND,   /* a round that another CPU has begun */
	WAIT_DRAIN,   /* a CPU that leaves the allocator, where it may wait for a round, or a handler: it is called again and again meanwhile */
	WAIT_DRAINED, /* a drain of all CPUs that another CPU has begun */
	WAIT_GROWTH,  /* META that another CPU grows, with rounds and sections opened for it (mm/meta_grow.c) */
	WAIT_OPENING, /* a section that another CPU opens or closes: META grows for it */
	WAIT_JOB,     /* helpers of a job: they open sections, make huge pages, clear */
	WAIT_TRANSIT, /* blocks and pages on their way, whose owner may reserve META and start jobs */
	WAIT_MEMORY,  /* memory of any kind that other CPUs are changing */
	WAIT_RANGE,   /* a range that is opened, or emptied into other memory */
	WAIT_TOUCH,   /* a touch of a huge mapping: it takes a page and clears it */
	WAIT_WORK,    /* a function that runs to completion on another CPU, whatever it does */
	WAIT_LEVELS
};

/* Of each CPU, written by it alone. */
struct wait_counts {
	u32 begun[WAIT_LEVELS]; /* waits of this level and above */
	u32 moved[WAIT_LEVELS]; /* what waits of higher levels may take for progress: waits begun, work finished */
};

/* Deadline that healthy CPUs meet even when many virtual ones share few real ones: grows with the number of CPUs. */
u64 wait_deadline_cpus(void);
extern u64 wait_ms; /* wait_ms= */

struct wait {
	const char *what;
	enum wait_level level;
	u64 start, deadline_ns; /* of one period */
	u64 since;              /* when the period began */
	u32 late;               /* periods missed so far */
	u32 still, bound;       /* the last of these, in which nothing moved; how many make it hopeless */
	bool soft;              /* bounded by hang= only; or the caller looks at `late` and gives up before */
	bool endless;           /* not even by that: for the end of a program's own work */
	bool extended;          /* something has moved */
	u64 spins;              /* stands in for time before the clock runs */
	u32 ahead;              /* in a queue: how many come first; 0: it is no queue, or not known */

	/* As it was at the first look: this CPU's waits from the level up. At the last: what moved below it, whose that was, `ahead`. */
	u32 begun, moved, queue;
	cpu_t whose;
};

/* With a period of wait_deadline_cpus(); the caller may change deadline_ns, and what is bool above. */
struct wait wait_begin(enum wait_level level, const char *what);
void wait_spin(struct wait *wait, cpu_t culprit);

/* Periods in a row without progress after which a wait of that level is hopeless. */
u32 wait_bound(enum wait_level level);

/* This CPU has finished a piece of work that others may wait for at `level`. Any context. */
void wait_moved(enum wait_level level);

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
