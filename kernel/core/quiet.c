/* Quiet programs that are linked to the kernel: see quiet.h, and cpus.h for their side. */
#include "kernel/core/quiet.h"

#include <arch/cpu.h>

#include "kernel/core/call.h"
#include "kernel/core/panic.h"

bool quiet_suspend_now(void)
{
	const irq_flags_t flags = irq_save();

	cpu_leave_rest();
	context_leave(CONTEXT_QUIET);
	irq_restore(flags);
	return true;
}

void quiet_resume_now(void)
{
	const irq_flags_t flags = irq_save();

	context_enter(CONTEXT_QUIET);
	quiet_begin();
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
