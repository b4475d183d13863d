/*
 * Performance counters; see pmu.h. CPUID tells which of two kinds the CPU has:
 *
 *   Intel   architectural monitoring version 2 and up (SDM vol. 3B, 20.2)
 *   AMD     core counters of PerfCtrExtCore (APM vol. 2, 13.2.1); PerfMonV2 (13.2.4) adds their
 *           number and a common switch
 *
 * Any access may fault, because hypervisors promise counters that they do not have. Counters that
 * fault are not used.
 */
#ifndef ASHLAR_HOSTED

#include "tests/bench/pmu.h"

#include "arch/x86_64/cpu/cpu.h"
#include "arch/x86_64/cpu/extable.h"
#include "arch/x86_64/cpu/msr.h"
#include "tests/bench/pmu_plan.h"

#define MSR_PMC0               0xc1
#define MSR_EVENT_SELECT0      0x186
#define MSR_FIXED_COUNTER0     0x309
#define MSR_FIXED_CONTROL      0x38d
#define MSR_GLOBAL_CONTROL     0x38f
#define MSR_AMD_SELECT0        0xc0010200 /* base of alternating select and counter registers */
#define MSR_AMD_GLOBAL_CONTROL 0xc0000301

#define SELECT_USER_AND_KERNEL (3ULL << 16)
#define SELECT_ENABLE          (1ULL << 22)
#define FIXED_TWO_ALWAYS       0x33ULL /* counters 0 and 1 in all rings */
#define GLOBAL_FIXED_TWO       (3ULL << 32)

enum { AMD_COUNTERS = 6 }; /* number that PerfCtrExtCore has */

static struct pmu_cpu cpu;
static struct pmu_plan plan;
static bool amd_global; /* there is a common switch */
static const char *missing = "not looked for yet";

static void identify(void)
{
	const u32 signature = cpuid(1, 0).eax;
	const struct cpuid leaf = cpuid(0xa, 0);

	cpu.family = (signature >> 8 & 0xf) +
		     ((signature >> 8 & 0xf) == 0xf ? signature >> 20 & 0xff : 0);
	cpu.model = (signature >> 4 & 0xf) | (signature >> 12 & 0xf0);
	if (cpuid(0, 0).eax >= 0xa && (leaf.eax & 0xff) >= 2) {
		cpu.intel = true;
		cpu.general = leaf.eax >> 8 & 0xff;
		cpu.fixed = leaf.edx & 0x1f;
		/* and the events beyond the end of CPUID's list */
		cpu.missing = leaf.ebx | ~0U << MIN(leaf.eax >> 24, 31U);
	} else if (cpuid(0x80000001, 0).ecx >> 23 & 1) {
		const bool v2 = cpuid(0x80000000, 0).eax >= 0x80000022;

		cpu.amd = true;
		cpu.general = v2 ? cpuid(0x80000022, 0).ebx & 0xf : 0;
		amd_global = v2 && (cpuid(0x80000022, 0).eax & 1);
		if (cpu.general == 0)
			cpu.general = AMD_COUNTERS;
	}
}

static u32 counter_msr(const struct pmu_slot *slot)
{
	if (slot->fixed)
		return MSR_FIXED_COUNTER0 + slot->counter;
	return cpu.amd ? MSR_AMD_SELECT0 + 2 * slot->counter + 1 : MSR_PMC0 + slot->counter;
}

static u32 select_msr(const struct pmu_slot *slot)
{
	return cpu.amd ? MSR_AMD_SELECT0 + 2 * slot->counter : MSR_EVENT_SELECT0 + slot->counter;
}

static bool start(const struct pmu_slot *slot)
{
	return wrmsr_safe(counter_msr(slot), 0) &&
	       (slot->fixed ||
		wrmsr_safe(select_msr(slot), slot->event | SELECT_USER_AND_KERNEL | SELECT_ENABLE));
}

/* Done once: look for counters and try each that CPUID promises. */
static void find_counters(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	identify();
	pmu_plan(&plan, &cpu);
	missing = plan.events
			  ? "there"
			  : "this CPU has none that the kernel knows, or its hypervisor hides them";
	for (unsigned i = 0; i < plan.events; i++) {
		if (start(&plan.slot[i]))
			continue;
		plan.events = plan.turns = 0;
		missing = "CPUID promises counters that fault";
	}
}

unsigned pmu_events(const char *names[PMU_EVENTS_MAX])
{
	find_counters();
	for (unsigned i = 0; i < plan.events; i++)
		names[i] = plan.slot[i].name;
	return plan.events;
}

unsigned pmu_turns(void)
{
	find_counters();
	return plan.turns;
}

const char *pmu_missing(void)
{
	find_counters();
	return missing;
}

/*
 * Counters of other turns stand still, because their select registers were switched off when their
 * turn ended.
 */
void pmu_start(unsigned turn)
{
	for (unsigned i = 0; i < plan.events; i++)
		if (plan.slot[i].turn == turn)
			start(&plan.slot[i]);
	if (cpu.intel) {
		wrmsr_safe(MSR_FIXED_CONTROL, FIXED_TWO_ALWAYS);
		wrmsr_safe(MSR_GLOBAL_CONTROL, GLOBAL_FIXED_TWO | ((1ULL << cpu.general) - 1));
	} else if (amd_global) {
		wrmsr_safe(MSR_AMD_GLOBAL_CONTROL, (1ULL << cpu.general) - 1);
	}
}

void pmu_stop(unsigned turn, u64 values[PMU_EVENTS_MAX])
{
	if (cpu.intel)
		wrmsr_safe(MSR_GLOBAL_CONTROL, 0);
	for (unsigned i = 0; i < plan.events; i++) {
		const struct pmu_slot *slot = &plan.slot[i];

		if (slot->turn != turn)
			continue;
		if (!slot->fixed)
			wrmsr_safe(select_msr(slot), 0);
		if (!rdmsr_safe(counter_msr(slot), &values[i]))
			values[i] = 0;
	}
}

#else /* a process has no counters of its own */

#include "tests/bench/pmu.h"

unsigned pmu_events(const char *names[PMU_EVENTS_MAX])
{
	return 0;
}

unsigned pmu_turns(void)
{
	return 0;
}

const char *pmu_missing(void)
{
	return "not in a hosted machine";
}

void pmu_start(unsigned turn)
{
}

void pmu_stop(unsigned turn, u64 values[PMU_EVENTS_MAX])
{
}

#endif
