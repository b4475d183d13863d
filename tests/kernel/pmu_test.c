/*
 * The choice of events and counters, for CPUs other than this one (tests/bench/pmu_plan.h).
 */
#include "tests/bench/pmu_plan.h"

#include "tests/kernel/test.h"

static const struct pmu_slot *slot_of(const struct pmu_plan *plan, const char *name)
{
	for (unsigned i = 0; i < plan->events; i++)
		if (strcmp(plan->slot[i].name, name) == 0)
			return &plan->slot[i];
	return NULL;
}

/*
 * Does each counter count one event in a turn, is each event counted once, and does each turn count
 * something?
 */
static bool is_sound(const struct pmu_plan *plan, const struct pmu_cpu *cpu)
{
	bool used[PMU_EVENTS_MAX] = {false};

	for (unsigned i = 0; i < plan->events; i++) {
		const struct pmu_slot *slot = &plan->slot[i];

		if (slot->turn >= plan->turns ||
		    slot->counter >= (slot->fixed ? cpu->fixed : cpu->general))
			return false;
		used[slot->turn] = true;
		for (unsigned j = 0; j < i; j++) {
			const struct pmu_slot *other = &plan->slot[j];

			if (strcmp(other->name, slot->name) == 0 ||
			    (other->turn == slot->turn && other->counter == slot->counter &&
			     other->fixed == slot->fixed))
				return false;
		}
	}
	for (unsigned turn = 0; turn < plan->turns; turn++)
		if (!used[turn])
			return false;
	return true;
}

static const char *const seed[] = {"cycles",    "instructions", "branches",   "branch_misses",
				   "l1d_loads", "l1d_misses",   "dtlb_loads", "dtlb_misses"};

TEST(arch_pmu, every_event_of_the_tables_is_counted_once_with_any_number_of_counters)
{
	static const struct pmu_cpu kinds[] = {
		{.intel = true, .family = 6, .model = 0x6a, .fixed = 3}, /* Icelake-X */
		{.intel = true, .family = 6, .model = 0x3f, .fixed = 3}, /* Haswell-E */
		{.intel = true, .family = 6, .model = 0x8f, .fixed = 4}, /* Sapphire Rapids */
		{.amd = true, .family = 0x19, .model = 1},               /* Milan */
		{.amd = true, .family = 0x1a, .model = 2},               /* Turin */
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		for (unsigned counters = 1; counters <= 8; counters++) {
			struct pmu_cpu cpu = kinds[i];
			struct pmu_plan plan;

			cpu.general = counters;
			pmu_plan(&plan, &cpu);
			EXPECT(is_sound(&plan, &cpu));
			for (size_t e = 0; e < ARRAY_LEN(seed); e++)
				EXPECT(slot_of(&plan, seed[e]));
			EXPECT_EQ(plan.turns, DIV_ROUND_UP(8, counters));
		}
	}
}

/* Icelake-X and Milan, the CPUs that the tables describe. */
TEST(arch_pmu, events_are_those_of_the_manuals)
{
	static const struct pmu_cpu icelake = {
		.intel = true, .family = 6, .model = 0x6a, .general = 8, .fixed = 3};
	static const struct pmu_cpu milan = {.amd = true, .family = 0x19, .model = 1, .general = 6};
	static const u64 events[][2] = {{0, 0x76},        {0, 0xc0},        {0xc4, 0xc2},
					{0xc5, 0xc3},     {0x81d0, 0x0040}, {0x0151, 0xc860},
					{0x81d0, 0xff45}, {0x0e08, 0xf045}};
	struct pmu_plan intel, amd;

	pmu_plan(&intel, &icelake);
	pmu_plan(&amd, &milan);
	for (size_t e = 0; e < ARRAY_LEN(seed); e++) {
		EXPECT_EQ(slot_of(&intel, seed[e])->event, events[e][0]);
		EXPECT_EQ(slot_of(&amd, seed[e])->event, events[e][1]);
	}
	EXPECT(slot_of(&intel, "cycles")->fixed && slot_of(&intel, "cycles")->counter == 1);
	EXPECT(slot_of(&intel, "instructions")->fixed &&
	       slot_of(&intel, "instructions")->counter == 0);
}
