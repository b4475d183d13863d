/*
 * Performance counters of this CPU: cycles, instructions, branches, and loads and misses of caches and TLB, as far as this model's
 * manual names events for them (arch/x86_64/pmu_plan.c).
 *
 * A CPU has fewer counters than there are events, so the same work is counted several times, some events each time.
 *
 * UNTESTED: no emulator here has them, and it never ran on hardware. Without them nothing is counted and records say pmu=none.
 */
#pragma once

#include "kernel/types.h"

enum { PMU_EVENTS_MAX = 12 };

/* Names as in records ("cycles"), of what pmu_stop() fills in; their number, 0 if there are no counters. Boot CPU. */
unsigned pmu_events(const char *names[PMU_EVENTS_MAX]);

/* How many turns it takes until each event has been counted; 0 if there are no counters, and then pmu_missing() says why. */
unsigned pmu_turns(void);
const char *pmu_missing(void);

/*
 * Count this turn's events from zero, on this CPU, until pmu_stop(), which fills in their values and no others. Interrupt
 * handlers meanwhile are counted too.
 */
void pmu_start(unsigned turn);
void pmu_stop(unsigned turn, u64 values[PMU_EVENTS_MAX]);
