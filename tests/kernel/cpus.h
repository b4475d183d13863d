/* Cases that need several CPUs at once. */
#pragma once

#include "kernel/call.h"

/* Any online CPU but this one that has no work, or CPU_NONE. */
cpu_t cpus_find_other(void);

/*
 * Run fn(arg) on every online CPU, this one included, all at the same time: nobody begins before all have arrived. Returns
 * when all are done, and how many they were. CPUs that do not arrive in time fail the case.
 */
cpu_t cpus_run_all(call_fn *fn, void *arg);

/* Wait, bounded, until every other CPU is halted in its idle loop. False, said why, if one is not. */
bool cpus_wait_idle(void);
