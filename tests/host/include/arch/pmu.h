/* A process has no performance counters of its own. */
#pragma once

#include "kernel/types.h"

enum { PMU_EVENTS_MAX = 4 };

static inline unsigned pmu_events(const char *names[PMU_EVENTS_MAX])
{
	(void)names;
	return 0;
}

static inline void pmu_start(void)
{
}

static inline void pmu_stop(u64 values[PMU_EVENTS_MAX])
{
	(void)values;
}
