/* Reports a call made in a forbidden context. The rules are in context.h. */
#include "kernel/core/context.h"

#include "kernel/core/panic.h"
#include "kernel/lib/format.h"

void context_reason(char *buf, size_t size)
{
	const u32 context = this_cpu()->context;

	if (context & CONTEXT_NMIS)
		format(buf, size, "in a handler of an NMI or a machine check");
	else if (context & CONTEXT_QUIET)
		format(buf, size, "between cpu_quiet_begin() and cpu_quiet_end()");
	else if (context / CONTEXT_CALL)
		format(buf, size, "in a function that another CPU called here");
	else if (context / CONTEXT_INTERRUPT)
		format(buf, size, "in an interrupt handler");
	else if (context)
		format(buf, size, "with a lock held (%u)", context);
	else
		format(buf, size, "in ordinary code");
}

void context_refuse(const char *call)
{
	char reason[CONTEXT_REASON_MAX];

	context_reason(reason, sizeof(reason));
	panic("%s() %s", call, reason);
}
