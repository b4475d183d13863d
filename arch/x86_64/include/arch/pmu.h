/*
 * Performance counters of this CPU, where there are any that are the same on every model.
 *
 * UNTESTED: no emulator here has them, and it never ran on hardware. Without them nothing is counted and records say pmu=none.
 */
#pragma once

#include "kernel/types.h"

enum { PMU_EVENTS_MAX = 4 };

/* Names as in records ("cycles"), of what pmu_stop() fills in; their number, 0 if there are no counters. Boot CPU. */
unsigned pmu_events(const char *names[PMU_EVENTS_MAX]);

/* Count from zero, on this CPU, until pmu_stop(). Interrupt handlers meanwhile are counted too. */
void pmu_start(void);
void pmu_stop(u64 values[PMU_EVENTS_MAX]);
