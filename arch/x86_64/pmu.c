/*
 * Performance counters: see arch/pmu.h. Two kinds, told by CPUID:
 *
 *   Intel   architectural monitoring version 2 and up (SDM vol. 3B, 20.2): instructions and cycles in fixed counters, references
 *           to and misses of the last-level cache in the first two general ones
 *   AMD     core counters of PerfCtrExtCore (APM vol. 2, 13.2.1): cycles (76h) and instructions (C0h)
 *
 * All accesses may fault and are given up then: hypervisors promise counters that they do not have.
 */
#include <arch/pmu.h>

#include "arch/x86_64/cpuid.h"
#include "arch/x86_64/msr.h"

#define MSR_PMC0 0xc1
#define MSR_EVENT_SELECT0 0x186
#define MSR_FIXED_COUNTER0 0x309
#define MSR_FIXED_CONTROL 0x38d
#define MSR_GLOBAL_CONTROL 0x38f
#define MSR_AMD_SELECT0 0xc0010200 /* select and counter in turn */

#define SELECT_USER_AND_KERNEL (3ULL << 16)
#define SELECT_ENABLE (1ULL << 22)
#define FIXED_TWO_ALWAYS 0x33ULL                /* counters 0 and 1 in all rings */
#define GLOBAL_TWO_AND_TWO (3ULL << 32 | 3ULL) /* fixed and general 0 and 1 */

struct counter {
	const char *name;
	u32 msr, select;
	u64 event;
};

static const struct counter intel[] = {
	{"instructions", MSR_FIXED_COUNTER0, 0, 0},
	{"cycles", MSR_FIXED_COUNTER0 + 1, 0, 0},
	{"llc_loads", MSR_PMC0, MSR_EVENT_SELECT0, 0x4f2e},
	{"llc_misses", MSR_PMC0 + 1, MSR_EVENT_SELECT0 + 1, 0x412e},
};

static const struct counter amd[] = {
	{"cycles", MSR_AMD_SELECT0 + 1, MSR_AMD_SELECT0, 0x76},
	{"instructions", MSR_AMD_SELECT0 + 3, MSR_AMD_SELECT0 + 2, 0xc0},
};

/* CPUID 0AH: version, number of general counters, number of events described, and a bit for each event that is missing. */
static bool has_intel(void)
{
	const struct cpuid leaf = cpuid(0xa, 0);
	const u32 missing = 1U << 3 | 1U << 4; /* references and misses of the last level */

	return (leaf.eax & 0xff) >= 2 && (leaf.eax >> 8 & 0xff) >= 2 && leaf.eax >> 24 > 4 && !(leaf.ebx & missing) &&
	       (leaf.edx & 0x1f) >= 2;
}

static bool has_amd(void)
{
	return cpuid(0x80000001, 0).ecx >> 23 & 1;
}

static const struct counter *counters(unsigned *count)
{
	*count = has_intel() ? ARRAY_LEN(intel) : has_amd() ? ARRAY_LEN(amd) : 0;
	return has_intel() ? intel : amd;
}

static bool start(const struct counter *counter)
{
	return wrmsr_safe(counter->msr, 0) &&
	       (!counter->select ||
		wrmsr_safe(counter->select, counter->event | SELECT_USER_AND_KERNEL | SELECT_ENABLE));
}

unsigned pmu_events(const char *names[PMU_EVENTS_MAX])
{
	unsigned count;
	const struct counter *c = counters(&count);

	for (unsigned i = 0; i < count; i++) {
		if (!start(&c[i]))
			return 0;
		names[i] = c[i].name;
	}
	return count;
}

void pmu_start(void)
{
	unsigned count;
	const struct counter *c = counters(&count);

	for (unsigned i = 0; i < count; i++)
		start(&c[i]);
	if (c == intel) {
		wrmsr_safe(MSR_FIXED_CONTROL, FIXED_TWO_ALWAYS);
		wrmsr_safe(MSR_GLOBAL_CONTROL, GLOBAL_TWO_AND_TWO);
	}
}

void pmu_stop(u64 values[PMU_EVENTS_MAX])
{
	unsigned count;
	const struct counter *c = counters(&count);

	if (c == intel)
		wrmsr_safe(MSR_GLOBAL_CONTROL, 0);
	for (unsigned i = 0; i < count; i++) {
		if (c[i].select)
			wrmsr_safe(c[i].select, 0);
		if (!rdmsr_safe(c[i].msr, &values[i]))
			values[i] = 0;
	}
}
