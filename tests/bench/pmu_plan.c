/*
 * Events by CPU; see pmu_plan.h.
 *
 *   Intel, architectural   instructions and cycles in fixed counters 0 and 1; branches, last level
 *                          (SDM vol. 3B, 20.2.1)
 *   Intel, by model        loads retired, lines brought to L1D, walks completed for loads (SDM vol.
 *                          3B, 20.3, and Intel's event lists: MEM_INST_RETIRED.ALL_LOADS,
 *                          L1D.REPLACEMENT, DTLB_LOAD_MISSES)
 *   AMD                    76h, C0h, C2h, C3h on every family; from 17h on 40h (data cache
 *                          accesses), 60h (requests of L1D to L2), 45h (misses of the L1 DTLB: all,
 *                          and those that missed in L2 too) (PPR for family 17h and 19h, 2.1.15)
 *
 * perf prints these events under the same names in the tables of the clearing series
 * (Arora 2023). On AMD an L1 load is any access, and a TLB load is a miss of the first level.
 */
#include "tests/bench/pmu_plan.h"

enum { LLC_LOADS_BIT = 3, LLC_MISSES_BIT = 4, BRANCHES_BIT = 5, BRANCH_MISSES_BIT = 6 };

static void add(struct pmu_plan *plan, const char *name, bool fixed, u64 event)
{
	if (plan->events < PMU_EVENTS_MAX)
		plan->slot[plan->events++] =
			(struct pmu_slot){.name = name, .fixed = fixed, .event = event};
}

static bool one_of(unsigned model, const u8 *models)
{
	for (; *models; models++)
		if (*models == model)
			return true;
	return false;
}

static void add_architectural(struct pmu_plan *plan, const struct pmu_cpu *cpu)
{
	static const struct {
		const char *name;
		u32 event, bit;
	} events[] = {{"branches", 0xc4, BRANCHES_BIT},
		      {"branch_misses", 0xc5, BRANCH_MISSES_BIT},
		      {"llc_loads", 0x4f2e, LLC_LOADS_BIT},
		      {"llc_misses", 0x412e, LLC_MISSES_BIT}};

	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		if (!(cpu->missing >> events[i].bit & 1))
			add(plan, events[i].name, false, events[i].event);
}

static void add_intel_model(struct pmu_plan *plan, const struct pmu_cpu *cpu)
{
	static const u8 haswell[] = {0x3c, 0x3d, 0x3f, 0x45, 0x46, 0x47, 0x4f, 0x56, 0};
	static const u8 skylake[] = {0x4e, 0x55, 0x5e, 0x6a, 0x6c, 0x7d, 0x7e, 0x8c,
				     0x8d, 0x8e, 0x9e, 0xa5, 0xa6, 0xa7, 0};
	static const u8 golden_cove[] = {0x8f, 0xcf, 0};
	const bool old = one_of(cpu->model, haswell), middle = one_of(cpu->model, skylake);

	if (cpu->family != 6 || !(old || middle || one_of(cpu->model, golden_cove)))
		return;
	add(plan, "l1d_loads", false, 0x81d0);
	add(plan, "l1d_misses", false, old || middle ? 0x0151 : 0xe124);
	add(plan, "dtlb_loads", false, 0x81d0);
	add(plan, "dtlb_misses", false, old ? 0x0108 : middle ? 0x0e08 : 0x0e12);
}

static void add_amd(struct pmu_plan *plan, const struct pmu_cpu *cpu)
{
	add(plan, "cycles", false, 0x76);
	add(plan, "instructions", false, 0xc0);
	add(plan, "branches", false, 0xc2);
	add(plan, "branch_misses", false, 0xc3);
	if (cpu->family < 0x17)
		return;
	add(plan, "l1d_loads", false, 0x0040);
	add(plan, "l1d_misses", false, 0xc860);
	add(plan, "dtlb_loads", false, 0xff45);
	add(plan, "dtlb_misses", false, 0xf045);
}

/*
 * Assign turns and counters. Fixed counters count in the first turn; general ones are filled turn
 * by turn.
 */
static void place(struct pmu_plan *plan, const struct pmu_cpu *cpu)
{
	unsigned fixed = 0, general = 0;

	for (struct pmu_slot *slot = plan->slot; slot < plan->slot + plan->events; slot++) {
		slot->turn = slot->fixed ? 0 : general / cpu->general;
		slot->counter = slot->fixed ? fixed++ : general++ % cpu->general;
		plan->turns = MAX(plan->turns, slot->turn + 1);
	}
}

void pmu_plan(struct pmu_plan *plan, const struct pmu_cpu *cpu)
{
	*plan = (struct pmu_plan){.events = 0};
	if (cpu->general == 0)
		return;
	if (cpu->intel && cpu->fixed >= 2) {
		add(plan, "instructions", true, 0);
		add(plan, "cycles", true, 0);
		add_architectural(plan, cpu);
		add_intel_model(plan, cpu);
	} else if (cpu->amd) {
		add_amd(plan, cpu);
	}
	place(plan, cpu);
}
