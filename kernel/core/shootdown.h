/*
 * TLB shootdown as a service: ranges are gathered into a batch and flushed in one round.
 *
 * Generations (the generation rule; mm/ and the models refer to it by these names):
 *
 *   G          rounds started so far. Only an initiator adds to it.
 *   published  per CPU: the value of G it had loaded before its latest *full* flush.
 *   done       highest g whose full round is complete: every online CPU published >= g or was seen
 *              idle.
 *
 * A CPU that clears or changes a PTE then calls shootdown_tag(), which fences and returns G + 1.
 * The memory that the PTE mapped may be reused once shootdown_done() >= tag; no other code scans
 * the CPUs.
 */
#pragma once

#include <arch/atomic.h>

#include "kernel/lib/types.h"

enum shootdown_idle {
	SHOOTDOWN_SKIP_IDLE, /* idle CPUs flush when they wake (if tlb_skip_idle=on) */
	/* page-table pages freed, mapping size changed, or a baseline: every CPU is interrupted */
	SHOOTDOWN_ALL_CPUS,
};

/* Tag for translations removed before this call. Any context, locks may be held. */
u64 shootdown_tag(void);

/*
 * The options tlb_skip_idle= and, where the CPU has the instruction, invlpgb=. Test cases set them
 * and restore them.
 */
extern bool tlb_skip_idle, tlb_broadcast;

/* `done`; a cache line of its own. Only the CPU that completes a full round raises it. */
extern u64 shootdown_generation_done;

/* Highest completed generation. Any context. */
static inline u64 shootdown_done(void)
{
	return atomic_load_acquire(&shootdown_generation_done);
}

/*
 * A full round. When it returns, no CPU uses a translation changed before the call, except that an
 * idle CPU which was skipped flushes first when it wakes; and shootdown_done() has reached every
 * tag taken before the call. No lock held; interrupts on or off (the caller serves its mailbox
 * while it waits).
 */
void shootdown_full(enum shootdown_idle idle);

/*
 * Wait until done >= tag. The caller waits for a round that another CPU has started, or starts one
 * if there is none. Many CPUs that wait at once share one round. The tag was returned by
 * shootdown_tag(). No lock held; interrupts on or off.
 */
void shootdown_wait(u64 tag);

/*
 * Gathered ranges. Up to SHOOTDOWN_PAGES_MAX pages are flushed one by one; more cause a full flush.
 */
enum { SHOOTDOWN_PAGES_MAX = 33, SHOOTDOWN_RANGES_MAX = 8 };

struct shootdown_batch {
	struct {
		virt_t start;
		u64 pages;
	} range[SHOOTDOWN_RANGES_MAX];
	unsigned ranges;
	u64 pages; /* total; too many pages, or too many ranges: a full flush */
};

void shootdown_batch_add(struct shootdown_batch *batch, virt_t start, u64 pages);

/*
 * Flush the batch in one round (no round if it is empty), and empty it. Same context as
 * shootdown_full().
 */
void shootdown_batch_flush(struct shootdown_batch *batch, enum shootdown_idle idle);

/*
 * shootdown_serve(), called from call_serve(): flush everything if a full round waits for this CPU.
 * shootdown_leave_idle(): flush everything if any round was missed while idle.
 */
void shootdown_serve(void);
void shootdown_leave_idle(void);

/*
 * A CPU joins: it sets its online bit, fences, loads G, moves to the kernel's page tables with
 * `load_tables` (which must drop every translation, global ones too) and publishes the loaded
 * value. From then on rounds wait for it. Interrupts off.
 */
void shootdown_join(void (*load_tables)(void));

/*
 * Totals since boot. `interrupted`: number of distinct CPUs interrupted since
 * shootdown_stats_reset_interrupted().
 */
struct shootdown_stats {
	u64 ops, flushes, ipis, interrupted, skipped, full, ranged;
};
void shootdown_stats_read(struct shootdown_stats *out);
void shootdown_stats_reset_interrupted(void);

/* Called once per-CPU data exists, and before the second CPU is started. */
void shootdown_init(void);
