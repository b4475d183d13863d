/*
 * Entering the allocator on this CPU, the counts of each CPU, and taking a zone's lock.
 *
 * A CPU that works on its own lists is "inside" the allocator. An interrupt that asks such a CPU to
 * drain its lists only leaves a note, and the CPU drains when it leaves. page/pcp.h describes the
 * lists and says why nothing more is needed.
 */
#pragma once

#include <arch/barrier.h>

#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "mm/memmap/upward.h"
#include "mm/memmap/zone.h"

struct pcp_zone;

/*
 * The counts of one CPU, in cache lines of its own. Readers add up the counts of all CPUs. Keys:
 *   (c) constant after start-up
 *   (o) written by its owner CPU only, read by that CPU only
 *   (oa) written by its owner CPU only, atomic, read by any CPU
 */
struct pcp_counts {
	/* (oa) enum mm_count; one CPU's share may fall below 0 */
	__cacheline_aligned u64 count[MM_COUNTS];
};

/* The state of one CPU in one struct mm. Keys: see struct pcp_counts. */
struct pcp {
	u8 inside; /* (o) between pcp_enter() and pcp_leave() */
	/* (o) set in the interrupt by which another CPU asks for a drain: drain on leaving */
	u8 drain_wanted;
	u8 evacuating; /* (o) in evacuate() */
	u8 holding;    /* (oa) the lists may hold something, and `high` of a zone may be above 0 */
	u64 drained; /* (oa) the last of the drains counted in mm->drains that this CPU has done */
	struct pcp_counts *counts; /* (c) */
	struct pcp_zone *freed;    /* (o) those of the zone that a single page was freed to last */
	/*
	 * (c) by node + 1, the lists of the zone that serves a request for it first; NULL for a
	 * node without memory. Entry 0 is for requests that name no node.
	 */
	struct pcp_zone **first;
	struct pcp_zone *zone[]; /* (c) */
};

static inline struct pcp *pcp_of_this_cpu(const struct mm *mm)
{
	return mm->pcp[cpu_id()];
}

/*
 * Add `n` to a count of this CPU (enum mm_count); `n` may be a negative number, wrapped. Not in an
 * interrupt handler.
 */
static inline void mm_count(struct mm *mm, unsigned which, u64 n)
{
	counter_add(&pcp_of_this_cpu(mm)->counts->count[which], n);
}

/*
 * Enter and leave the allocator on this CPU. Drains that were requested meanwhile are done on
 * leaving. Calls do not nest. A CPU that is inside must not wait for another CPU's lists: two CPUs
 * that did so would wait for each other.
 */
static inline struct pcp *pcp_enter(struct mm *mm) __acquires(pcp)
{
	struct pcp *pcp = pcp_of_this_cpu(mm);

	DEBUG_ASSERT(!pcp->inside, "the allocator was entered twice");
	pcp->inside = 1;
	__counts_as(pcp, 1);
	fence_compiler(); /* only an interrupt on this same CPU looks */
	return pcp;
}

static inline void pcp_left(struct pcp *pcp) __releases(pcp)
{
	pcp->inside = 0;
	__counts_as(pcp, -1);
}

static inline void pcp_leave(struct mm *mm, struct pcp *pcp) __releases(pcp)
{
	fence_compiler();
	if (unlikely(atomic_load_relaxed(&pcp->drain_wanted)))
		mm_upward.drain_asked(mm);
	pcp_left(pcp);
}

/*
 * A zone's lock. The unlocking CPU does a drain that was requested meanwhile. The reason is a CPU
 * that takes the lock again and again, to isolate ranges or to grow a pool: it may not enter its
 * lists for minutes, and the interrupt that asks for a drain always finds it queued for the lock.
 */
static inline void zone_lock(struct zone *zone) __acquires(zone)
{
	spin_lock(&zone->lock);
}

static inline void zone_unlock(struct zone *zone) __releases(zone)
{
	const struct pcp *pcp = pcp_of_this_cpu(zone->mm);

	spin_unlock(&zone->lock);
	if (unlikely(atomic_load_relaxed(&pcp->drain_wanted)) && !pcp->inside)
		pcp_leave(zone->mm, pcp_enter(zone->mm));
}
