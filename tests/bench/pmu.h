/*
 * Performance counters of this CPU: cycles, instructions, branches, and loads and misses of caches
 * and TLB, as far as this model's manual names events for them (tests/bench/pmu_plan.c).
 *
 * A CPU has fewer counters than there are events, so the same work runs several times, in turns,
 * and each turn counts some of the events.
 *
 * UNTESTED: no emulator here has counters, and the code never ran on hardware. Without counters
 * nothing is counted and records say pmu=none.
 */
#pragma once

#include "kernel/lib/types.h"

enum { PMU_EVENTS_MAX = 12 };

/*
 * Names, as in records ("cycles"), of the values that pmu_stop() fills in. Returns their number, 0
 * if there are no counters. Boot CPU.
 */
unsigned pmu_events(const char *names[PMU_EVENTS_MAX]);

/*
 * Number of turns until each event has been counted. 0 if there are no counters; pmu_missing() then
 * says why.
 */
unsigned pmu_turns(void);
const char *pmu_missing(void);

/*
 * Count this turn's events from zero, on this CPU, until pmu_stop(), which fills in the values of
 * these events and no others. Interrupt handlers that run in between are counted too.
 */
void pmu_start(unsigned turn);
void pmu_stop(unsigned turn, u64 values[PMU_EVENTS_MAX]);
