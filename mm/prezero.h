/*
 * Clearing ahead of need: CPUs that have nothing to do clear free pages of the machine's pools, prezero=N of each size at most
 * (0: none), so that a touch of a huge mapping finds a zero page and clears nothing.
 *
 *   free list of a node   [zero][zero] ... [zero][not known] ... [not known]
 *                          taken first                            cleared from the end
 *
 * That a page is zero is written in its block record while it lies free in the pool, and nowhere else: whoever takes it out, for
 * whatever purpose, takes the note away, and a page that comes in comes without one. So the note is never older than the clearing.
 *
 * The bound is also one on waste: a user who does not want zeros gets them all the same. A 1 GiB page is left as it is, half
 * cleared and unknown, when work arrives for the CPU.
 */
#pragma once

#include "mm/pool.h"

void prezero_init(void);

/* Pages came into the pool: idle CPUs may look. No lock held. Costs a load when switched off. */
void prezero_wake(struct pool *pool);

/* Another bound from now on, for tests and benchmarks. Zero pages beyond a lower one stay. Returns the one before. */
u64 prezero_set(u64 pages);
