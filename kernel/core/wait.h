/*
 * Bounded waits. Nothing in Ashlar spins without a deadline that names what it waited for.
 *
 *	struct wait wait = wait_begin(WAIT_ANSWER, "shootdown acknowledgements");
 *	while (!done())
 *		wait_spin(&wait, cpu);
 *
 * A wait past its deadline reports once per period what is late and which CPU (CPU_NONE if none in
 * particular), and keeps waiting. It panics after `bound` periods in a row in which nothing moved.
 * A wait of a soft level, for work without a known duration or with deadlines of its own, panics
 * after end.hang= seconds instead (kernel/core/watchdog.h). wait_spin() relaxes the CPU and serves
 * its mailbox.
 *
 * Levels
 *
 * Every wait names its level. The work that a wait waits for may itself wait, but only at lower
 * levels. Waits therefore nest in one order, like locks by rank, and a circle of waits is a broken
 * rule instead of a hang.
 *
 * wait_spin() asserts this for the waits of one CPU, in every build: between two checks of a wait,
 * the CPU has begun no other wait of the same level or above. Soft waits are exempt. They have no
 * bound that an inner wait could outlast, and a request for memory between two checks may go
 * through every level again.
 *
 * Bounds and progress
 *
 * The bound of each level is twice that of the level below. A period counts only if nothing moved
 * in it. These events count as movement:
 *
 *   - A CPU begins a wait of a lower level, finishes a piece of work of a lower level
 *     (wait_moved()), or goes on with a wait of a lower level because something moved for that
 *     wait. If the CPU waited for is known, only its events count, else those of all other CPUs.
 *   - The queue of a lock moves on.
 *   - A CPU waits for a console (WAIT_CONSOLE, the lowest level); that wait has a bound of its own.
 *   - A wait for one CPU after the other turns to the next CPU.
 *
 * Reporting a wait does not count as movement. Otherwise two waits that hang would begin each
 * other's bound anew whenever their reports meet at the console.
 *
 * So a wait lasts as long as the work below it goes on, and a wait that hangs ends before the waits
 * that depend on it. The CPU that begins the hanging wait has moved at that moment. Half of the
 * bound of every outer wait is then left for what that CPU did before without waiting.
 *
 * No wait is extended for ever. CPUs that wait in a circle, or for a CPU that hangs, begin nothing
 * and finish nothing, and waits of one level do not count for each other. If other CPUs go on,
 * end.hang= seconds end any wait that was ever extended.
 */
#pragma once

#include "kernel/lib/types.h"

/*
 * Levels, innermost first. The work of a later level may wait for an earlier level, never the other
 * way round. Soft are WAIT_ROUND, WAIT_DRAINED, and all levels from WAIT_JOB on.
 */
enum wait_level {
	WAIT_CONSOLE, /* a console that takes its bytes, perhaps with a lock held */
	/* a turn at a lock: a lock holder waits for nothing but a lock of higher rank */
	WAIT_LOCK,
	/* a CPU that is asked to run a call or to flush; the function may take a lock */
	WAIT_ANSWER,
	WAIT_ROUND, /* a round that another CPU has begun, with deadlines of its own */
	/*
	 * A CPU that must first leave the allocator, where it may wait for a round, or a handler.
	 * That CPU is called again and again meanwhile.
	 */
	WAIT_DRAIN,
	WAIT_DRAINED, /* a drain of all CPUs that another CPU has begun, likewise */
	/*
	 * Metadata memory that another CPU grows, with rounds and sections opened for it
	 * (mm/zone/meta_grow.c)
	 */
	WAIT_GROWTH,
	WAIT_OPENING, /* a section that another CPU opens or closes; metadata memory grows for it */
	WAIT_JOB,     /* helpers of a job: they open sections, make huge pages, clear */
	/* blocks and pages in transit, whose owner may reserve metadata memory, start jobs */
	WAIT_TRANSIT,
	WAIT_MEMORY, /* memory of any kind that other CPUs are changing */
	WAIT_RANGE,  /* a range that is opened, or emptied into other memory */
	/* a touch of a mapping, which takes a page and clears or copies it: 1 GiB, perhaps */
	WAIT_TOUCH,
	WAIT_WORK, /* a function that runs to completion on another CPU, whatever it does */
	WAIT_LEVELS
};

/* Counts of one CPU, written by that CPU alone. */
struct wait_counts {
	u32 begun[WAIT_LEVELS]; /* waits of this level and above */
	/* what waits of higher levels count as progress: waits begun, work finished */
	u32 moved[WAIT_LEVELS];
};

/*
 * Length of a period that healthy CPUs meet even when many virtual CPUs share few real ones. It
 * grows with the number of CPUs.
 */
u64 wait_deadline_cpus(void);
extern u64 wait_period_ms; /* 0: by the number of CPUs; a test may set another length */

struct wait {
	const char *what;
	enum wait_level level;
	u64 start, deadline_ns; /* length of one period */
	u64 since;              /* when the period began */
	u32 late;               /* periods missed so far */
	u32 still;              /* of these, since something last moved */
	/*
	 * Value of `still` that makes the wait hopeless. 0: the wait is soft, bounded by end.hang=
	 * only, or by a caller that reads `late` and gives up earlier.
	 */
	u32 bound;
	bool endless;  /* not bounded by end.hang= either: for the end of a program's own work */
	bool extended; /* something has moved, so that a period did not count */
	u64 spins;     /* number of checks */
	u32 ahead;     /* in a queue: number of tickets ahead; 0: no queue, or not known */

	/*
	 * `begun` is as of the first check: waits that this CPU has begun at the level and above.
	 * The others are as of the last missed period: what had moved, and the CPU waited for.
	 */
	u32 begun, moved;
	cpu_t whose;
};

/*
 * Begin a wait with a period of wait_deadline_cpus(). The caller may change deadline_ns, bound and
 * endless.
 */
struct wait wait_begin(enum wait_level level, const char *what);
void wait_spin(struct wait *wait, cpu_t culprit);

/*
 * Take a word that one CPU at a time has; 0: nobody has it. Other CPUs wait with WAIT_TOUCH. The
 * CPU gives it back by storing 0 (atomic_store_release()). Context: ordinary.
 */
void wait_turn(u32 *turn, const char *what);

/* This CPU has finished a piece of work that others may wait for at `level`. Any context. */
void wait_moved(enum wait_level level);

/* Reports of late waits so far, for tests. Atomic. */
extern u32 wait_reports;

/*
 * Ask a CPU by NMI where it is, and print the frames with their symbols, innermost first, or that
 * there was no answer. Any context.
 */
void wait_print_where(cpu_t cpu);
