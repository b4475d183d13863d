/*
 * Bounded waits: see wait.h. A period that passes without the event is reported, with what was
 * awaited and from which CPU. The wait goes on, because nothing may be reused on the strength of a
 * timeout. After a number of periods without progress the machine is declared broken.
 *
 * Deadlines scale with the number of CPUs. Where many virtual CPUs share few real ones, a broadcast
 * that all of them must answer takes seconds although no CPU is at fault (measured under QEMU's TCG
 * with 252 busy CPUs on 2: 3.7 s on average, 12 s at worst). cpu_deadline_scale() adds what the
 * architecture knows about the machine.
 *
 * The first report of a wait and its last show how far the late CPU has got.
 */
#include "kernel/core/wait.h"

#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/console.h>
#include <arch/cpu.h>
#include <arch/user.h>

#include "kernel/core/call.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/core/watchdog.h"
#include "kernel/lib/cpumask.h"
#include "kernel/lib/format.h"

enum { PERIODS = 5, SPINS_BEFORE_NAP = 1000, NAP_MAX = 20, FRAMES_MAX = 16, FROM_MAX = 24 };

#define DEADLINE_BASE_NS    (100 * NS_PER_MS)
#define DEADLINE_PER_CPU_NS (10 * NS_PER_MS)

u32 wait_reports;
u64 wait_period_ms;

u64 wait_deadline_cpus(void)
{
	if (wait_period_ms)
		return wait_period_ms * NS_PER_MS;
	return (DEADLINE_BASE_NS + cpu_count * DEADLINE_PER_CPU_NS) * cpu_deadline_scale();
}

/* ---- levels ---- */

/*
 * Only this CPU writes. A count that an interrupt adds between the load and the store may be lost,
 * and is not needed.
 */
static void count_one(u32 *count)
{
	atomic_store_relaxed(count, atomic_load_relaxed(count) + 1);
}

void wait_moved(enum wait_level level)
{
	if (this_cpu()->complaining == 0)
		count_one(&this_cpu()->waits.moved[level]);
}

struct wait wait_begin(enum wait_level level, const char *what)
{
	const u64 now = clock_ns();
	const bool soft = level == WAIT_ROUND || level == WAIT_DRAINED || level >= WAIT_JOB;

	for (unsigned l = 0; l <= level; l++)
		count_one(&this_cpu()->waits.begun[l]);
	wait_moved(level);
	return (struct wait){.what = what,
			     .level = level,
			     .start = now,
			     .since = now,
			     .deadline_ns = wait_deadline_cpus(),
			     .bound = soft ? 0 : (u32)PERIODS << level >> WAIT_LOCK};
}

/*
 * Movements below the level of `wait`, on the CPU waited for or, if it is not known, on all CPUs
 * but this one; and places gained in a queue.
 */
static u32 moved_for(const struct wait *wait, cpu_t culprit)
{
	u32 sum = 0u - wait->ahead;
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online) {
		if (culprit == CPU_NONE ? cpu == this_cpu()->id : cpu != culprit)
			continue;
		for (unsigned l = 0; l < wait->level; l++)
			sum += atomic_load_relaxed(&cpu_data(cpu)->waits.moved[l]);
	}
	return sum;
}

/*
 * One more period is over. It is compared with the period before, so the first one always counts.
 * Movement in this wait counts as movement for the waits that depend on its end.
 */
static void count_period(struct wait *wait, cpu_t culprit)
{
	const u32 moved = moved_for(wait, culprit);

	wait->still++;
	if (wait->late++ > 0 && (moved != wait->moved || culprit != wait->whose)) {
		wait->still = 0;
		wait->extended = true;
		wait_moved(wait->level);
	}
	wait->moved = moved;
	wait->whose = culprit;
}

/* ---- reports ---- */

/*
 * By NMI, because the CPU may spin with interrupts off. One CPU needs less time to answer than all
 * of them.
 */
void wait_print_where(cpu_t cpu)
{
	virt_t where[FRAMES_MAX];
	const size_t frames =
		cpu_where(cpu, where, FRAMES_MAX, DEADLINE_BASE_NS * cpu_deadline_scale());

	if (frames == 0)
		pr_warn("CPU %u does not report where it is", cpu);
	for (size_t i = 0; i < frames; i++) {
		u64 offset = 0;
		const char *name = symbol_lookup(where[i] - (i > 0), &offset);
		const char *unknown = where[i] < USER_END ? "ring 3" : "?";

		print("  CPU %u %s %016llx  %s+0x%llx\n", cpu, i ? "from" : "at  ", where[i],
		      name ? name : unknown, offset + (i > 0));
	}
}

/* True if the wait has lasted so long that the machine must be broken. */
static bool is_over(const struct wait *wait, u64 ns)
{
	if (wait->endless)
		return false;
	if (wait->bound > 0 && wait->still >= wait->bound)
		return true;
	return (wait->bound == 0 || wait->extended) && hang_seconds > 0 &&
	       ns > hang_seconds * NS_PER_S;
}

/* A period has passed without the event, `ns` after the wait began. */
static void wait_late(struct wait *wait, cpu_t culprit, u64 ns)
{
	char from[FROM_MAX] = "";

	if (culprit != CPU_NONE)
		format(from, sizeof(from), " from CPU %u", culprit);
	count_period(wait, culprit);
	/* a soft wait may report for ever: the watchdog must not take its reports for progress */
	this_cpu()->complaining++;
	pr_warn("still waiting for %s%s after %llu ms", wait->what, from, ns / NS_PER_MS);
	if (culprit != CPU_NONE && (wait->late == 1 || is_over(wait, ns)))
		wait_print_where(culprit);
	this_cpu()->complaining--;
	atomic_fetch_add(&wait_reports, 1);
	if (is_over(wait, ns) && !panic_is_ours())
		panic("gave up waiting for %s%s", wait->what, from);
}

/*
 * A CPU that waits long naps longer, so that many waiting CPUs leave the real ones to the CPUs they
 * wait for: 64 CPUs that looked every 0.1 ms kept two busy with nothing else. In a queue, a CPU
 * naps for half of the way to the front; otherwise for more with every nap, up to 2 ms.
 */
static u32 nap_length(const struct wait *wait)
{
	if (wait->ahead)
		return (wait->ahead + 1) / 2;
	return (u32)MIN(1 + (wait->spins - SPINS_BEFORE_NAP) / 8, (u64)NAP_MAX);
}

void wait_spin(struct wait *wait, cpu_t culprit)
{
	const u32 begun = atomic_load_relaxed(&this_cpu()->waits.begun[wait->level]);
	u64 now;

	if (wait->spins++ == 0)
		wait->begun = begun;
	ASSERT(wait->bound == 0 || wait->begun == begun,
	       "another wait of its level or above began during a wait for %s", wait->what);
	if (wait->spins <= SPINS_BEFORE_NAP)
		cpu_relax();
	else
		cpu_nap(nap_length(wait));
	if (atomic_load_relaxed(&panic_in_progress) && !panic_is_ours())
		cpu_halt_forever();
	call_serve();

	now = clock_ns();
	if (now - wait->since <= wait->deadline_ns)
		return;
	wait->since = now;
	wait_late(wait, culprit, now - wait->start);
}

void wait_turn(u32 *turn, const char *what)
{
	struct wait wait;

	if (atomic_cas(turn, 0, 1))
		return;
	wait = wait_begin(WAIT_TOUCH, what);
	while (atomic_load_relaxed(turn) || !atomic_cas(turn, 0, 1))
		wait_spin(&wait, CPU_NONE);
}
