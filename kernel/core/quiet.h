/*
 * Entries into the kernel of a CPU that runs a quiet program (cpu_quiet_begin(), cpus.h).
 *
 * A program is quiet by its promise, which holds with tlb.quiet=off as well: CONTEXT_QUIET is set,
 * and the calls that may read a struct page refuse. With tlb.quiet=on, rounds leave the CPU alone
 * (shootdown.h). Every entry into the kernel then ends that state, flushes, and restores the state
 * when the kernel is left:
 *
 *	interrupt      handle_interrupt() (arch), before it looks for the handler
 *	page fault     fault_resolve()
 *	the program    cpu_quiet_end()
 *
 * Handlers of NMIs and machine checks are no entries: they read no struct page.
 */
#pragma once

#include "kernel/core/context.h"
#include "kernel/lib/types.h"

bool quiet_suspend_now(void);
void quiet_resume_now(void);

/*
 * The first call of an entry, after cpu_leave_idle(): the CPU is not quiet from here on, and has
 * flushed everything. Returns true if it was quiet; quiet_resume() takes the answer when the entry
 * ends. Interrupts on or off.
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
