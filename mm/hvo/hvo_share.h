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
 *   frames                                                          metadata memory, under its lock
 *
 * Frames are reserved before the batch is divided. So a stretch cannot fail, no helper waits for
 * metadata memory to grow, and the set of runs that have frames does not depend on the number of
 * CPUs. hvo_share() is for hvo_make.c and hvo_restore.c only.
 */
#pragma once

#include "mm/hvo/hvo_steps.h"

/* A step over all runs of a batch, or of a stretch of one. */
typedef void hvo_step_fn(struct hvo_batch *stretch);

/*
 * Call fn() for all of `whole`, in which `to_do` runs need work: once, or for several stretches on
 * several CPUs. A round is due for the whole if it is due for a stretch. No lock held.
 */
void hvo_share(struct hvo_batch *whole, u64 to_do, hvo_step_fn *fn);

/*
 * The number of CPUs that work on a request for so many pages, in every mode and for each step.
 * Context: any. (hvo_share.c)
 */
unsigned hvo_threads_for(u64 pages);
