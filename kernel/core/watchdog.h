/*
 * A run that hangs must say where, and end.
 *
 * Progress means that something is printed other than a report of a late wait, or that the program
 * asks for input. After end.hang= seconds without progress, the watchdog prints where every busy
 * CPU is. end.onhang= chooses the consequence: crash (a panic with its verdict, the default),
 * reboot, halt, or go (report again after as long).
 *
 * CPUs that wait for each other rarely end here, because those waits are bounded and name the
 * culprit (kernel/core/wait.h). A soft wait, for work without a known duration, ends the machine by
 * itself after end.hang= seconds, whatever else is printed meanwhile.
 *
 * With end.hang=off nothing of this happens, so a program may wait as long as it likes.
 */
#pragma once

#include "kernel/lib/types.h"

extern u64 hang_seconds; /* end.hang=; 0 (off): never, and watchdog_tick() need not be called */

/* Report progress that is not printed. Any context. */
void watchdog_touch(void);

/*
 * Called about once a second, always on the same CPU, in an NMI or a handler. The CPU may be
 * anywhere, with locks held and interrupts off. Ends the run if it hangs and end.onhang= says so.
 */
void watchdog_tick(void);

/* Print where every busy CPU is, and this one. In an NMI. */
void watchdog_show(void);

/* Set when the run is over: a machine that halts from then on does not hang. Atomic. */
extern bool watchdog_stopped;
