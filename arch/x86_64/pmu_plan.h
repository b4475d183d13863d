/*
 * Which events are counted on which counter in which turn, as a function of what CPUID says: for tests with CPUs that are not here.
 *
 *   turn 0   fixed: cycles, instructions (Intel)    general: as many events as there are counters
 *   turn 1                                          general: the next ones
 */
#pragma once

#include <arch/pmu.h>

struct pmu_cpu {
	bool intel, amd;
	unsigned family, model;
	unsigned general, fixed; /* counters of each kind */
	u32 missing;             /* CPUID 0AH, EBX: architectural events that this CPU has not */
};

struct pmu_slot {
	const char *name;
	unsigned turn, counter;
	bool fixed;
	u64 event; /* unit mask and event number, as the select register has them */
};

struct pmu_plan {
	struct pmu_slot slot[PMU_EVENTS_MAX];
	unsigned events, turns;
};

/* Pure. No events if the CPU's counters are not known. */
void pmu_plan(struct pmu_plan *plan, const struct pmu_cpu *cpu);
