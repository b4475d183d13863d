/* The CPU's counters, for benchmarks; see counters.h. */
#include "tests/bench/counters.h"

#include "tests/bench/measure.h"

void counters_stop(struct counters *c, unsigned turn)
{
	pmu_stop(turn, c->value);
	c->counted = turn + 1 == pmu_turns();
}

void counters_text(const struct counters *c, char *text, size_t size)
{
	const char *names[PMU_EVENTS_MAX];
	const unsigned events = c->counted ? pmu_events(names) : 0;
	size_t at = 0;

	format(text, size, "none");
	for (unsigned i = 0; i < events && at < size; i++)
		at += (size_t)format(text + at, size - at, "%s%s:%llu", i ? "," : "", names[i],
				     c->value[i]);
}

void counters_print(const struct counters *c, u64 units)
{
	const char *names[PMU_EVENTS_MAX];
	const unsigned events = c->counted ? pmu_events(names) : 0;
	u64 cycles = 0, instructions = 0;

	for (unsigned i = 0; i < events; i++) {
		print("%s%s %llu", i ? ", " : "", names[i], c->value[i] / units);
		if (strcmp(names[i], "cycles") == 0)
			cycles = c->value[i];
		if (strcmp(names[i], "instructions") == 0)
			instructions = c->value[i];
	}
	if (cycles)
		print(", IPC %llu.%02llu", instructions / cycles,
		      instructions * 100 / cycles % 100);
}
