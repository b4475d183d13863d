/*
 * The work of the memory subsystem in a leg of a benchmark: before the clock starts, and while it
 * runs. All legs read the same counters and record them under the same keys.
 */
#pragma once

#include "mm/page/pcp.h"

struct work {
	u64 opened; /* sections */
	u64 splits; /* PMD leaves of the vmemmap that became tables */
	u64 formed; /* blocks that got all their struct pages */
	u64 shared; /* blocks whose tails came to be shared */
	u64 meta;   /* blocks that became metadata memory */
	u64 rounds; /* shootdowns */
};

/* The counts of all CPUs' lists since `then`. */
struct pcp_stats pcp_stats_since(const struct pcp_stats *then);

/* Print the keys and values of a record: " after_opened=4 ..." with `prefix` "after_". */
void work_print(const char *prefix, const struct work *work);

/*
 * Of one leg: while it was prepared, and while its clock ran, in all its turns together. Zero at
 * first. `warm`: an earlier leg has met as much memory in the state that this one begins with, so
 * that the host behind a virtual machine has given it, and an emulator has translated the code.
 */
struct leg_work {
	struct work before, inside, mark;
	bool warm;
};

/* In each turn: its preparation begins; its clock is about to start; its clock has stopped. */
void leg_work_prepare(struct leg_work *work);
void leg_work_begin(struct leg_work *work);
void leg_work_end(struct leg_work *work);

/*
 * The leg meets `needs` of memory, in any unit, and `most` is the most that legs of its state have
 * met, 0 before the first. Sets and returns `warm`.
 */
bool leg_work_warm(struct leg_work *work, u64 *most, u64 needs);

/* Print all: " opened=4 ... before_opened=4 ... warm=yes". */
void leg_work_print(const struct leg_work *work);
