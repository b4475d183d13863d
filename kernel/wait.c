/*
 * Bounded waits. A period that passes without the event is reported, with what was awaited and from whom; the wait goes
 * on, because nothing may be reused on the strength of a timeout, and after ten periods the machine is declared broken.
 *
 * Deadlines scale with the number of CPUs: where many virtual CPUs share few real ones, a broadcast that all of them
 * must answer takes seconds although nobody is at fault (measured under QEMU's TCG with 252 busy CPUs on 2: 3.7 s on
 * average, 12 s at worst). cpu_deadline_scale() adds what the architecture knows about the machine.
 */
#include "kernel/wait.h"

#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/cpu.h>

#include "kernel/call.h"
#include "kernel/cpumask.h"
#include "kernel/panic.h"
#include "kernel/printk.h"

enum { PERIODS_MAX = 10, SPINS_BEFORE_NAP = 1000 };

#define DEADLINE_BASE_NS (100 * NS_PER_MS)
#define DEADLINE_PER_CPU_NS (10 * NS_PER_MS)

/* Before the clock runs only spins can be counted; one period is then this many. */
#define SPINS_PER_PERIOD (1ULL << 26)

u64 wait_deadline_cpus(void)
{
	return (DEADLINE_BASE_NS + cpu_count * DEADLINE_PER_CPU_NS) * cpu_deadline_scale();
}

struct wait wait_begin(u64 deadline_ns, const char *what)
{
	return (struct wait){.what = what, .start = clock_ns(), .deadline_ns = deadline_ns};
}

static bool period_passed(struct wait *wait, u64 now)
{
	wait->spins++;
	if (!now)
		return wait->spins % SPINS_PER_PERIOD == 0;
	return now - wait->start > (wait->late + 1) * wait->deadline_ns;
}

static void wait_report(const struct wait *wait, cpu_t culprit, u64 ms)
{
	if (culprit == CPU_NONE)
		pr_warn("still waiting for %s after %llu ms", wait->what, (unsigned long long)ms);
	else
		pr_warn("still waiting for %s from CPU %u after %llu ms", wait->what, culprit, (unsigned long long)ms);
}

void wait_spin(struct wait *wait, cpu_t culprit)
{
	u64 now;

	if (wait->spins < SPINS_BEFORE_NAP)
		cpu_relax();
	else
		cpu_nap();
	if (atomic_load_relaxed(&panic_in_progress) && !panic_is_ours())
		cpu_halt_forever();
	call_serve();

	now = clock_ns();
	if (!period_passed(wait, now))
		return;
	wait->late++;
	wait_report(wait, culprit, (now - wait->start) / NS_PER_MS);
	if (wait->late < PERIODS_MAX || wait->soft || panic_is_ours())
		return;
	if (culprit == CPU_NONE)
		panic("gave up waiting for %s", wait->what);
	panic("gave up waiting for %s from CPU %u", wait->what, culprit);
}
