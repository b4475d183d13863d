/* Cases that need several CPUs at once. */
#pragma once

#include "kernel/core/call.h"
#include "kernel/core/wait.h"

/* Any online CPU but this one that has no work, or CPU_NONE. */
cpu_t cpus_find_other(void);

/*
 * Run fn(arg) on several CPUs, this one included, all at the same time: nobody begins before all
 * have arrived. Returns when all are done, and how many they were. CPUs that do not arrive in time
 * fail the case.
 *
 * As many as there are, but at most CPUS_TOGETHER: where virtual CPUs share few real ones, a
 * contended lock is handed on once per time slice of the host, and 252 spinning for one make a case
 * take hours without testing more.
 */
enum { CPUS_TOGETHER = 4 }; /* unless together= says otherwise */
cpu_t cpus_run_together(call_fn *fn, void *arg);

/*
 * Work for one CPU, interrupts on, that serves no mailbox by itself: sets `running`, ends when
 * somebody sets `stop`.
 */
struct cpus_busy {
	u32 running, stop;
};
void cpus_be_busy(void *busy);

/*
 * Wait, bounded, until every other CPU is halted in its idle loop. False, said why, if one is not.
 */
bool cpus_wait_idle(void);

/*
 * Work that hears no interrupt and serves no mailbox until its CPU was reported late
 * (kernel/core/wait.h), or never.
 */
struct cpus_deaf {
	u32 running;
	bool for_ever;
};
void cpus_be_deaf(void *deaf);
void cpus_deaf_start(struct cpus_deaf *deaf, cpu_t cpu); /* returns when it is */

/*
 * Work that begins one wait of a level after the other, none of which lasts, until somebody sets
 * `stop`.
 */
struct cpus_moving {
	u32 running, stop;
	enum wait_level level;
};
void cpus_move(void *moving);
void cpus_move_start(struct cpus_moving *moving, cpu_t cpu); /* returns when it does */
