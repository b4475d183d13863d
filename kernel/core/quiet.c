/* CPUs that run a quiet program: see quiet.h, and cpus.h for the program's side. */
#include "kernel/core/quiet.h"

#include <arch/cpu.h>

#include "kernel/core/cpus.h"
#include "kernel/core/panic.h"
#include "kernel/core/shootdown.h"

/*
 * Interrupts are off, because a handler that came between the flag and the flush would take this
 * CPU for one that has flushed.
 */
bool quiet_suspend_now(void)
{
	const irq_flags_t flags = irq_save();

	shootdown_leave_quiet();
	context_leave(CONTEXT_QUIET);
	irq_restore(flags);
	return true;
}

void quiet_resume_now(void)
{
	const irq_flags_t flags = irq_save();

	context_enter(CONTEXT_QUIET);
	if (quiet_on)
		shootdown_enter_quiet();
	irq_restore(flags);
}

void cpu_quiet_begin(void)
{
	context_assert(CONTEXT_ORDINARY);
	quiet_resume_now();
}

void cpu_quiet_end(void)
{
	ASSERT(context_in(CONTEXT_QUIET), "cpu_quiet_end() on a CPU that is not quiet");
	quiet_suspend_now();
}
