/*
 * A run that hangs must say where, and end.
 *
 * Progress is that something is printed, other than that a wait is late, or that somebody asks for input. If there is none
 * for hang= seconds, what every busy CPU is doing is printed, and onhang= says what follows: crash (a panic with its
 * verdict, the default), reboot, halt, or go (say so again after as long). CPUs that wait for each other mostly do not
 * come here: those waits are bounded and name the culprit (kernel/wait.h); soft ones, for what takes as long as it takes, end the machine
 * after hang= seconds by themselves, whatever else is printed meanwhile.
 */
#pragma once

#include "kernel/types.h"

extern u64 hang_seconds; /* hang=; 0: never */

/* Somebody made progress that is not printed. Any context. */
void watchdog_touch(void);

/*
 * Called about once a second on the boot CPU, in an NMI: it may be anywhere, locks held and interrupts off. Ends the run
 * if it hangs and onhang= says so.
 */
void watchdog_tick(void);

/* The run is over: a machine that halts now does not hang. */
void watchdog_stop(void);

/* True if the watchdog wants to be called at all. */
bool watchdog_wanted(void);
