/*
 * Fault injection: places where something may fail ask here whether it shall, by site and by count.
 *
 *	fail=SITE:N,...     the N-th pass of a site fails, once; N+: each N-th does
 *	fail=ap:CPU         that CPU hangs while it starts
 *	fail=ipi:MICROSECONDS  each CPU answers its messages so much later
 *
 * Memory's sites belong to a machine (struct mm), so that a test can break its private one; those of the command line are the real
 * machine's, armed when start-up is over. Passes and failures of every site are counted while anything is armed, and printed at
 * the end of the run. Where nothing is armed a site costs one load and a branch; none is on a fast path.
 *
 * The sweeps (cases mm.fault.*) fail the first, second, third ... pass of whatever site comes.
 */
#pragma once

#include <arch/atomic.h>

#include "kernel/types.h"

/* In the order of the names in fail.c. */
enum fail_site {
	FAIL_ALLOC,   /* an allocation that the CPU's own lists do not serve */
	FAIL_META,    /* a reservation of frames for struct pages and tables */
	FAIL_OPEN,    /* opening a section of the memmap */
	FAIL_ISOLATE, /* isolating a block */
	FAIL_TAKE,    /* taking an isolated range off the free lists */
	FAIL_MOVE,    /* a page to move another one to */
	FAIL_PTE,     /* a page table of a huge mapping, or of the kernel's own region */
	FAIL_SITES,
	FAIL_ANY = FAIL_SITES, /* fail_arm(): whichever is passed */
};

struct fail_count {
	u32 left;  /* passes until one fails; 0: none does. Atomic */
	u32 every; /* what it begins with again after that; 0: it stays 0 */
};

struct fail_plan {
	bool armed;
	struct fail_count count[FAIL_SITES + 1]; /* [FAIL_ANY] counts passes of every site */
	u64 passed[FAIL_SITES], failed[FAIL_SITES]; /* while armed; atomic */
};

/* The `nth` pass of `site` from now on fails, and with `again` each nth after it. Nobody else arms the plan at the same time. */
enum fail_again { FAIL_ONCE, FAIL_AGAIN };
void fail_arm(struct fail_plan *plan, enum fail_site site, u32 nth, enum fail_again again);

/* Nothing fails any more. True if what was armed for once has happened. */
bool fail_disarm(struct fail_plan *plan);

bool fail_passed(struct fail_plan *plan, enum fail_site site); /* use fail_here() */

/* Shall this pass of the site fail? Any context. */
static inline bool fail_here(struct fail_plan *plan, enum fail_site site)
{
	return unlikely(atomic_load_relaxed(&plan->armed)) && fail_passed(plan, site);
}

/* What the command line asks for: does this CPU hang at its start; and a delay before messages are answered. */
bool fail_ap(cpu_t cpu);
void fail_delay_ipi(void);

/* Arm `plan` with what the command line asks for: start-up is over. At the end of the run: print what was passed, and what failed. */
void fail_begin(struct fail_plan *plan);
void fail_print(const struct fail_plan *plan);
