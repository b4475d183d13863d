/*
 * Quiet CPUs: they run a program that reads no struct page, and rounds for struct pages leave them
 * alone (shootdown.h). There are two kinds:
 *
 *   ring 3      The CPU is quiet from its last instructions in the kernel, with interrupts off
 *               (quiet_begin()), to its first ones (quiet_end()). Calls, exceptions and interrupts
 *               are entries (arch).
 *   linked      A program that is linked to the kernel promises it (cpu_quiet_begin(), cpus.h).
 *               CONTEXT_QUIET is set, and the calls that may read a struct page refuse. Each entry
 *               ends the quiet state, and restores it when the kernel is left:
 *
 *	interrupt      handle_interrupt() (arch), before it looks for the handler
 *	page fault     fault_resolve()
 *	the program    cpu_quiet_end()
 *
 * Handlers of NMIs and machine checks are no entries: they read no struct page. With tlb.quiet=off
 * CPUs are marked in the same way, but every round interrupts them.
 */
#pragma once

#include <arch/atomic.h>
#include <arch/check.h>

#include "kernel/core/context.h"
#include "kernel/core/percpu.h"
#include "kernel/core/shootdown.h"
#include "kernel/lib/types.h"

/* The CPU is quiet from here on. Interrupts off. */
static inline void quiet_begin(void)
{
	check_event(CHECK_QUIET, 0, 0);
	atomic_store_release(&this_cpu()->quiet, 1);
}

/*
 * A CPU that was idle or quiet does not rest from here on. It flushes if it has published less than
 * `due`, the highest generation that it may have missed. A program's calls pass here, so the clear
 * and the fence are one instruction. Interrupts off: a handler that came before the flush would
 * take this CPU for one that has flushed.
 */
static inline void rest_end(const u64 *due)
{
	struct percpu *self = this_cpu();

	/* a fence, too; pairs with the initiator's: it sees 0, or this CPU its G */
	atomic_fetch_and(&self->rests, 0);
	check_event(CHECK_AWAKE, 0, 0);
	if (unlikely(atomic_load_relaxed(&self->tlb_published) < atomic_load_acquire(due)))
		shootdown_flush();
}

/* The first call of an entry from ring 3. Interrupts off. */
static inline void quiet_end(void)
{
	rest_end(&shootdown_generation_full);
}

bool quiet_suspend_now(void);
void quiet_resume_now(void);

/*
 * For linked programs, after cpu_leave_rest(): the CPU is not quiet from here on. Returns true if
 * it was; quiet_resume() takes the answer when the entry ends. Interrupts on or off.
 */
static inline bool quiet_suspend(void)
{
	return unlikely(context_in(CONTEXT_QUIET)) && quiet_suspend_now();
}

static inline void quiet_resume(bool was_quiet)
{
	if (unlikely(was_quiet))
		quiet_resume_now();
}
