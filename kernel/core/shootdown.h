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
 * The memory that the PTE mapped may be reused once shootdown_reusable() >= tag; no other code
 * scans the CPUs.
 *
 * Quiet CPUs run a program that reads no struct page: one in ring 3, or one linked to the kernel
 * that said so (quiet.h). The rule for them:
 *
 * 1. Full rounds for struct pages (SHOOTDOWN_SKIP_QUIET) do not interrupt a quiet CPU. All other
 *    rounds do, among them those for page-table pages, for mappings of another size, for huge
 *    mappings and for the memory of programs.
 * 2. A quiet CPU that enters the kernel clears its flag, fences, and flushes everything if it
 *    missed a round, before anything else. Interrupts are off meanwhile.
 * 3. `done` does not wait for quiet CPUs: the code that uses struct pages may go on. Frames do
 *    wait: shootdown_reusable() is the part of `done` that quiet CPUs have flushed for, too.
 *
 * The entry itself is safe before its flush, because it uses nothing but the kernel's image, this
 * CPU's stack and its struct percpu. No round for struct pages changes a mapping of those.
 */
#pragma once

#include <arch/atomic.h>

#include "kernel/lib/types.h"

/* The CPUs that a round may leave alone: a set, as in `rests` of struct percpu. */
enum shootdown_skip {
	/* page-table pages freed, mapping size changed, or a baseline: every CPU is interrupted */
	SHOOTDOWN_ALL_CPUS = 0,
	SHOOTDOWN_SKIP_IDLE = 1, /* idle CPUs flush when they wake (if tlb.skip_idle=on) */
	/*
	 * quiet CPUs flush when they enter the kernel (if tlb.quiet=on); for struct pages only, and
	 * ranged rounds skip none
	 */
	SHOOTDOWN_SKIP_QUIET = 1 << 8,
	SHOOTDOWN_SKIP_BOTH = SHOOTDOWN_SKIP_IDLE | SHOOTDOWN_SKIP_QUIET,
};

/* Tag for translations removed before this call. Any context, locks may be held. */
u64 shootdown_tag(void);

/* The option tlb.skip_idle=. Test cases set it and restore it. */
extern bool tlb_skip_idle;

/* The option tlb.quiet=: rounds for struct pages leave quiet CPUs alone. */
extern bool quiet_on;

/* How long a CPU may miss rounds before shootdown_ask_quiet(). Test cases and benchmarks set it. */
extern u64 quiet_ask_ns;

/* `done`; a cache line of its own. Only the CPU that completes a full round raises it. */
extern u64 shootdown_generation_done;

/* G, and the highest g of a full round: read by CPUs that end a rest (quiet.h). */
extern u64 shootdown_generation, shootdown_generation_full;

/*
 * Highest completed generation: code that uses memory sees every change tagged up to it. Any
 * context.
 */
static inline u64 shootdown_done(void)
{
	return atomic_load_acquire(&shootdown_generation_done);
}

/*
 * Highest generation whose frames may be reused: shootdown_done(), but no more than each quiet CPU
 * has flushed for. Any context.
 */
u64 shootdown_reusable(void);

/*
 * A full round. When it returns, no CPU uses a translation changed before the call, except that an
 * idle CPU which was skipped flushes first when it wakes, and a quiet one when it enters the
 * kernel; and shootdown_done() has reached every tag taken before the call. No lock held;
 * interrupts on or off (the caller serves its mailbox while it waits).
 */
void shootdown_full(enum shootdown_skip skip);

/*
 * Wait until done >= tag. The caller waits for a round that another CPU has started, or starts one
 * if there is none. Many CPUs that wait at once share one round. The tag was returned by
 * shootdown_tag(), for struct pages: the round skips idle and quiet CPUs. No lock held; interrupts
 * on or off.
 */
void shootdown_wait(u64 tag);

/*
 * Wait until shootdown_reusable() >= tag. Quiet CPUs that hold it back are interrupted at once,
 * because the caller is short of frames. Context as shootdown_wait().
 */
void shootdown_settle(u64 tag);

/*
 * Interrupt the quiet CPUs that missed a round quiet_ask_ns ago or earlier, and do not wait for
 * them. A CPU that stays quiet is asked once in that time. Context as shootdown_wait().
 */
void shootdown_ask_quiet(void);

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
void shootdown_batch_flush(struct shootdown_batch *batch, enum shootdown_skip skip);

/*
 * shootdown_serve(), called from call_serve(): flush everything if a full round waits for this CPU.
 * shootdown_flush(): flush everything, because this CPU missed a round while it rested.
 */
void shootdown_serve(void);
void shootdown_flush(void);

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
	/* quiet CPUs left alone by rounds, also counted in `skipped`; asked to flush for frames */
	u64 skipped_quiet, asked;
};
void shootdown_stats_read(struct shootdown_stats *out);
void shootdown_stats_reset_interrupted(void);

/* Called once per-CPU data exists, and before the second CPU is started. */
void shootdown_init(void);
