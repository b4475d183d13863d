/* The CPU's counters over a piece of work, in the form that benchmarks print (pmu.h). */
#pragma once

#include "tests/bench/pmu.h"

enum { COUNTERS_TEXT = 320 };

struct counters {
	u64 value[PMU_EVENTS_MAX];
	bool counted; /* every turn was counted */
};

/*
 * Ends a turn that pmu_start() began. The work is done pmu_turns() times, with counters that were
 * zero before the first.
 */
void counters_stop(struct counters *c, unsigned turn);

/* Make the text of a record: "cycles:N,instructions:N,...", or "none". */
void counters_text(const struct counters *c, char *text, size_t size);

/* Print, for people, each event per `units`, and instructions per cycle. */
void counters_print(const struct counters *c, u64 units);
