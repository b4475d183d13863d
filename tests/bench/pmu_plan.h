/*
 * The plan of which event each counter counts in each turn, as a function of CPUID's answers, so
 * that tests can pass those of other CPUs.
 *
 *   turn 0   fixed: cycles, instructions (Intel)    general: as many events as there are counters
 *   turn 1                                          general: the next ones
 */
#pragma once

#include "tests/bench/pmu.h"

struct pmu_cpu {
	bool intel, amd;
	unsigned family, model;
	unsigned general, fixed; /* counters of each kind */
	u32 missing;             /* CPUID 0AH, EBX: architectural events that this CPU lacks */
};

struct pmu_slot {
	const char *name;
	unsigned turn, counter;
	bool fixed;
	u64 event; /* unit mask and event number in the select register's format */
};

struct pmu_plan {
	struct pmu_slot slot[PMU_EVENTS_MAX];
	unsigned events, turns;
};

/* Make the plan. It has no events if the CPU's counters are unknown. Pure. */
void pmu_plan(struct pmu_plan *plan, const struct pmu_cpu *cpu);
