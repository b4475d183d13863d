/* What the CPU's counters saw of a piece of work, as benchmarks print it (<arch/pmu.h>). */
#pragma once

#include <arch/pmu.h>

enum { COUNTERS_TEXT = 320 };

struct counters {
	u64 value[PMU_EVENTS_MAX];
	bool counted; /* every turn was */
};

/* How many times the work is done until every event has been counted; 0: there are no counters, counters_missing() says why. */
unsigned counters_turns(void);
const char *counters_missing(void);

void counters_begin(struct counters *c);
void counters_start(struct counters *c, unsigned turn);
void counters_stop(struct counters *c, unsigned turn);

/* "cycles:N,instructions:N,...", or "none", for a record. */
void counters_text(const struct counters *c, char *text, size_t size);

/* For people: each event per `units`, and instructions a cycle. */
void counters_print(const struct counters *c, u64 units);
