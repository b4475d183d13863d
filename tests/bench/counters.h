/* The CPU's counters over a piece of work, in the form that benchmarks print (pmu.h). */
#pragma once

#include "tests/bench/pmu.h"

enum { COUNTERS_TEXT = 320 };

struct counters {
	u64 value[PMU_EVENTS_MAX];
	bool counted; /* every turn was counted */
};

/*
 * Number of times the work must be done until every event has been counted. 0 if there are no
 * counters; counters_missing() then says why.
 */
unsigned counters_turns(void);
const char *counters_missing(void);

void counters_begin(struct counters *c);
void counters_start(struct counters *c, unsigned turn);
void counters_stop(struct counters *c, unsigned turn);

/* Make the text of a record: "cycles:N,instructions:N,...", or "none". */
void counters_text(const struct counters *c, char *text, size_t size);

/* Print, for people, each event per `units`, and instructions per cycle. */
void counters_print(const struct counters *c, u64 units);
