/* The CPUs, as a program sees them: see cpus.h. */
#include "kernel/core/cpus.h"

#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/cpu.h>
#include <arch/timer.h>

#include "kernel/core/call.h"
#include "kernel/core/context.h"
#include "kernel/core/percpu.h"

cpu_t cpu_this(void)
{
	return cpu_id();
}

cpu_t cpus_started(void)
{
	return cpumask_weight(&cpus_online);
}

cpu_t cpus_known(void)
{
	return cpu_count;
}

bool cpu_is_started(cpu_t cpu)
{
	return cpu < cpu_count && cpu_online(cpu);
}

void call_others(call_fn *fn, void *arg)
{
	context_assert(CONTEXT_ORDINARY);
	call_cpus(&cpus_online, fn, arg);
}

static bool must_wait(const u32 *flag, u64 until_ns)
{
	return atomic_load_acquire(flag) == 0 && (until_ns == 0 || clock_ns() < until_ns);
}

/* Interrupts are off for the last look, so that a wake after it ends the halt. */
static void halt_unless_come(const u32 *flag, u64 until_ns)
{
	irq_disable();
	if (must_wait(flag, until_ns))
		cpu_halt_idle();
	irq_enable();
}

bool cpu_wait(const u32 *flag, u64 until_ns)
{
	context_assert(CONTEXT_ORDINARY);
	while (must_wait(flag, until_ns)) {
		const u64 look_ns = idle_task_in_wait(until_ns);

		if (look_ns == 0) {
			halt_unless_come(flag, look_ns);
		} else if (timer_set(TIMER_WAIT, look_ns, timer_ends_halt, NULL) == 0) {
			halt_unless_come(flag, look_ns);
			timer_clear(TIMER_WAIT);
		} else {
			call_serve();
			cpu_relax();
		}
	}
	return atomic_load_acquire(flag) != 0;
}

void cpu_wake(cpu_t cpu)
{
	if (cpu_is_started(cpu) && cpu != cpu_id())
		ipi_send(cpu);
}
