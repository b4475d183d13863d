/*
 * A batch divided among CPUs. Its list is cut into stretches, CPUs take them one by one, and
 * afterwards the list is put together again in its old order.
 *
 *   list   [ stretch 0 | stretch 1 | ... ]     four for each CPU, 32 at most
 *
 * All modes do this by one rule, for forming, remapping and restoring. During the work these belong
 * to:
 *
 *   a run in transit, its records, its lines and its struct pages   the CPU that has its stretch
 *   the list, and the results                                       the CPU that asked, before and
 *                                                                   after
 *   frames                                                          META, under its lock
 *
 * Frames are reserved before the batch is divided. So a stretch cannot fail, no helper waits for
 * META to grow, and the set of runs that have frames does not depend on the number of CPUs.
 * hvo_share() is for hvo.c and hvo_restore.c only.
 */
#pragma once

#include "mm/hvo/hvo.h"

struct stretch {
	struct mm *mm;
	const struct hvo_mode *mode;
	struct block_list list;
	bool remapped; /* a round is due */
	cpu_t cpu;     /* the CPU that did it */
};

typedef void stretch_fn(struct stretch *stretch);

/*
 * Call fn() for all of `whole`, in which `to_do` runs need work: as one stretch, or as several
 * stretches on several CPUs. No lock held.
 */
void hvo_share(struct stretch *whole, u64 to_do, stretch_fn *fn);

/*
 * The number of CPUs that work on a request for so many pages, in every mode and for each step.
 * Context: any. (hvo_share.c)
 */
unsigned hvo_threads_for(u64 pages);

/*
 * The most CPUs that made or restored the pages of one batch since hvo_cpus_forget(), at least 1.
 */
unsigned hvo_cpus_most(void);
void hvo_cpus_forget(void);
