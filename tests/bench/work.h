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

/* All work since boot. */
struct work work_now(void);

/* The work since `then`. */
struct work work_since(const struct work *then);

/* What the lists of all CPUs did since `then`. */
struct pcp_stats pcp_stats_since(const struct pcp_stats *then);

/* Print the keys and values of a record: " after_opened=4 ..." with `prefix` "after_". */
void work_print(const char *prefix, const struct work *work);

/* Of one leg: while it was prepared, and while its clock ran. */
struct leg_work {
	struct work before, inside;
};

/* Its preparation begins; its clock is about to start; its clock has stopped. */
void leg_work_prepare(struct leg_work *work);
void leg_work_begin(struct leg_work *work);
void leg_work_end(struct leg_work *work);

/* Print both: " opened=4 ... before_opened=4 ...". */
void leg_work_print(const struct leg_work *work);
