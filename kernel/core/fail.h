/*
 * Fault injection. Each place where an operation may fail (a site) asks here whether it must fail
 * now. The answer depends on the site and on a count of passes.
 *
 *	debug.fail=N          each N-th pass of any site fails
 *	debug.ap_hangs=CPU    that CPU hangs while it starts
 *	debug.ipi_late_us=N   each CPU answers its messages that much later
 *
 * The sites of the memory subsystem belong to a machine (struct mm), so that a test can make its
 * private one fail. The command line arms those of the real machine when start-up is over. Passes
 * and failures of every site are counted while the plan is armed, and printed at the end of the
 * run. While nothing is armed a site costs one load and a branch; no site is on a fast path.
 *
 * The sweeps (cases mm.fault.*) fail the first, second, third ... pass of any site.
 */
#pragma once

#include <arch/atomic.h>

#include "kernel/lib/types.h"

/* In the order of the names in fail.c. */
enum fail_site {
	FAIL_ALLOC,   /* an allocation that the CPU's own lists do not serve */
	FAIL_META,    /* a reservation of frames for struct pages and tables */
	FAIL_OPEN,    /* opening a section of the memmap */
	FAIL_ISOLATE, /* isolating a block */
	FAIL_TAKE,    /* taking an isolated range off the free lists */
	FAIL_MOVE,    /* allocating the destination of a page move */
	FAIL_PTE,     /* a page table of a huge mapping, or of the kernel's own region */
	FAIL_SITES,
	FAIL_ANY = FAIL_SITES, /* fail_arm(): any site */
};

struct fail_count {
	u32 left;  /* passes until one fails; 0: none does. Atomic */
	u32 every; /* value to restart from after a failure; 0: do not restart */
};

struct fail_plan {
	bool armed;
	struct fail_count count[FAIL_SITES + 1];    /* [FAIL_ANY] counts passes of every site */
	u64 passed[FAIL_SITES], failed[FAIL_SITES]; /* while armed; atomic */
};

/*
 * Arm `plan`: the `nth` pass of `site` from now on fails, and with FAIL_AGAIN each nth pass after
 * it. The caller makes sure that no other CPU arms the plan at the same time.
 */
enum fail_again { FAIL_ONCE, FAIL_AGAIN };
void fail_arm(struct fail_plan *plan, enum fail_site site, u32 nth, enum fail_again again);

/* Stop all failures. True if every failure armed to happen once has happened. */
bool fail_disarm(struct fail_plan *plan);

bool fail_passed(struct fail_plan *plan, enum fail_site site); /* called by fail_here() */

/* True if this pass of the site must fail. Any context. */
static inline bool fail_here(struct fail_plan *plan, enum fail_site site)
{
	return unlikely(atomic_load_relaxed(&plan->armed)) && fail_passed(plan, site);
}

/*
 * Failures that the command line asks for. fail_ap() returns true if that CPU must hang at its
 * start. fail_delay_ipi() waits for as long as the answer to a message must be delayed.
 */
bool fail_ap(cpu_t cpu);
void fail_delay_ipi(void);

/*
 * fail_begin() arms `plan` with what the command line asks for, once start-up is over. fail_print()
 * prints, at the end of the run, which sites were passed and which failed.
 */
void fail_begin(struct fail_plan *plan);
void fail_print(const struct fail_plan *plan);
