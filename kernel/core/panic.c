/*
 * The end of a run that met a broken invariant. The first CPU that panics owns the panic. It prints
 * the reason, lets the architecture print registers and a backtrace and stop the other CPUs, and
 * ends the run with verdict "crash". CPUs that panic after it stop silently, and a panic inside the
 * panic goes straight to the verdict, so that the first message is the one that is read.
 */
#include "kernel/core/panic.h"

#include <arch/atomic.h>
#include <arch/console.h>
#include <arch/cpu.h>

#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/core/verdict.h"

enum { REASON_MAX = 768 };

bool panic_in_progress;
cpu_t panic_owner = CPU_NONE;

bool panic_is_ours(void)
{
	return atomic_load_relaxed(&panic_owner) == cpu_id();
}

void panic(const char *fmt, ...)
{
	static char reason[REASON_MAX]; /* written by the owner, whose stack may be nearly full */
	bool first;

	irq_disable();
	first = atomic_cas(&panic_owner, CPU_NONE, cpu_id());
	if (!first && !panic_is_ours())
		cpu_halt_forever();
	atomic_store_relaxed(&panic_in_progress, true);
	FORMAT_ARGS(reason, sizeof(reason), fmt);
	if (!first) {
		print("PANIC inside the panic: %s\n", reason);
		verdict_end_with(VERDICT_CRASH);
	}
	print("\nPANIC on CPU %u: %s\n", cpu_id(), reason);
	panic_arch();
	verdict_end_with(VERDICT_CRASH);
}
