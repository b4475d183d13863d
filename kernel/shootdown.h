/*
 * TLB shootdown as a service: ranges are gathered into a batch and flushed in one round.
 *
 * Generations (the generation rule; mm/ and the models refer to it by these names):
 *
 *   G          rounds started so far. Only an initiator adds to it.
 *   published  per CPU: the value of G it had loaded before its latest *full* flush.
 *   done       highest g whose full round is complete: every online CPU published >= g or was seen idle.
 *
 * Whoever clears or changes a PTE then calls shootdown_tag(): a fence, then G + 1. What the PTE mapped may be reused
 * once shootdown_done() >= tag; nothing else scans CPUs.
 */
#pragma once

#include "kernel/types.h"

enum shootdown_idle {
	SHOOTDOWN_SKIP_IDLE, /* idle CPUs flush when they wake (if tlb_skip_idle=on) */
	SHOOTDOWN_ALL_CPUS,  /* page-table pages freed, mapping size changed, or a baseline: everybody stops */
};

/* Tag for what was unmapped before this call. Any context, locks may be held. */
u64 shootdown_tag(void);

/* The options tlb_skip_idle= and, where the CPU can, invlpgb=. Cases set them, and put them back. */
extern bool tlb_skip_idle, tlb_broadcast;

/* Highest completed generation. Any context. */
u64 shootdown_done(void);

/*
 * A full round: when it returns, no CPU uses a translation changed before the call (idle ones excepted, which flush
 * first when they wake) and shootdown_done() has reached every tag taken before the call.
 * No lock held; interrupts on or off (the caller serves its mailbox while it waits).
 */
void shootdown_full(enum shootdown_idle idle);

/*
 * Wait until done >= tag, for a round that another CPU has started if there is one, else starting one. Many CPUs that wait at once
 * start one round together. The tag was returned by shootdown_tag(). No lock held; interrupts on or off.
 */
void shootdown_wait(u64 tag);

/* Gathered ranges. Up to SHOOTDOWN_PAGES_MAX pages are flushed one by one, more by a full flush. */
enum { SHOOTDOWN_PAGES_MAX = 33, SHOOTDOWN_RANGES_MAX = 8 };

struct shootdown_batch {
	struct {
		virt_t start;
		u64 pages;
	} range[SHOOTDOWN_RANGES_MAX];
	unsigned ranges;
	u64 pages; /* total; more than SHOOTDOWN_PAGES_MAX, or too many ranges: full */
};

void shootdown_batch_add(struct shootdown_batch *batch, virt_t start, u64 pages);

/* Flush what was gathered in one round (none if the batch is empty), and empty the batch. Context as above. */
void shootdown_batch_flush(struct shootdown_batch *batch, enum shootdown_idle idle);

/* Full flush if a full round waits for this CPU (from call_serve()), or, leaving idle, if any round was missed. */
void shootdown_serve(void);
void shootdown_leave_idle(void);

/*
 * A CPU joins: sets its online bit, fences, loads G, moves to the kernel's page tables with `load_tables` (which must
 * drop every translation, global ones too) and publishes. From then on rounds count on it. Interrupts off.
 */
void shootdown_join(void (*load_tables)(void));

/* Totals since boot. `interrupted`: distinct CPUs stopped since shootdown_stats_reset_interrupted(). */
struct shootdown_stats {
	u64 ops, flushes, ipis, interrupted, skipped, full, ranged;
};
void shootdown_stats_read(struct shootdown_stats *out);
void shootdown_stats_reset_interrupted(void);

/* Once per-CPU data exists; before the second CPU is started. */
void shootdown_init(void);
