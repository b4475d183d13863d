/*
 * Clearing ahead of need: CPUs that have nothing to do clear free pages of the machine's pools, at
 * most prezero=N of each size (0: none), so that a touch of a huge mapping finds a zero page and
 * clears nothing.
 *
 *   free list of a node   [zero][zero] ... [zero][not known] ... [not known]
 *                          taken first                            cleared from the end
 *
 * The block record notes that a page is zero; the fact is recorded nowhere else. The note goes with
 * the page when it leaves the pool unused: to the buddy and back, through demotion and through
 * joining with others (block.h). It is removed when the page is given to a user. A page that comes
 * back has none, unless a mapping knows that nobody wrote to it (huge_entry.h).
 *
 * The bound also limits waste, because a user who does not want zeros gets them all the same. Pages
 * that enter the pool as zero may exceed it. When work arrives for a CPU that is clearing a 1 GiB
 * page, or the pool is held, the CPU gives the page back half cleared, not known to be zero.
 */
#pragma once

#include "mm/hugetlb/pool.h"

/*
 * Start-up, once the pools exist. Idle CPUs look at the pages that are there, and from now on at
 * pages that come in.
 */
void prezero_init(void);

/* The idle task (call.h): clear one page, if one is wanted. Returns true if it did. */
bool prezero_idle(void);

/*
 * Pages have entered the pool, so idle CPUs may look. No lock held. Costs one load when switched
 * off.
 */
void prezero_wake(struct pool *pool);

/*
 * Set another bound from now on, for tests and benchmarks. Zero pages beyond a lower bound stay.
 * Returns the bound before.
 */
u64 prezero_set(u64 pages);

/*
 * Hold the pool for a request that must not miss a page: idle CPUs clear no page of it until
 * prezero_release(), and those that clear one now have given it back when prezero_hold() returns.
 * Holds nest. Context: ordinary.
 */
void prezero_hold(struct pool *pool);
void prezero_release(struct pool *pool);

/*
 * Hold the pool if idle CPUs may be clearing pages of it. Returns false if they are not. A bound
 * that is raised after that counts from the next request on. Context: ordinary.
 */
bool prezero_hold_if_on(struct pool *pool);

/*
 * Hold the machine's pools until prezero_resume(): for audits. Returns the bound. Context:
 * ordinary.
 */
u64 prezero_pause(void);
void prezero_resume(void);
