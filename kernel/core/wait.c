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

enum { PERIODS = 5, SPINS_BEFORE_NAP = 1000, NAP_MAX = 20, FRAMES_MAX = 16 };

#define DEADLINE_BASE_NS    (100 * NS_PER_MS)
#define DEADLINE_PER_CPU_NS (10 * NS_PER_MS)

/* Before the clock runs, only spins can be counted. One period is then this many spins. */
#define SPINS_PER_PERIOD (1ULL << 26)

u32 wait_reports;
u64 wait_period_ms;

u64 wait_deadline_cpus(void)
{
	if (wait_period_ms)
		return wait_period_ms * NS_PER_MS;
	return (DEADLINE_BASE_NS + cpu_count * DEADLINE_PER_CPU_NS) * cpu_deadline_scale();
}

/* ---- levels ---- */

u32 wait_bound(enum wait_level level)
{
	return (u32)PERIODS << level >> WAIT_LOCK;
}

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
	count_one(&this_cpu()->waits.moved[level]);
}

/*
 * Number of waits that this CPU has begun at `level` and above. Read at every turn of a wait, and
 * therefore kept as one word.
 */
static u32 begun_from(enum wait_level level)
{
	return atomic_load_relaxed(&this_cpu()->waits.begun[level]);
}

static void count_begun(enum wait_level level)
{
	for (unsigned l = 0; l <= level; l++)
		count_one(&this_cpu()->waits.begun[l]);
	wait_moved(level);
}

/* Number of movements that `cpu` has counted below `level`. */
static u32 moved_below(enum wait_level level, cpu_t cpu)
{
	const struct wait_counts *counts = &cpu_data(cpu)->waits;
	u32 sum = 0;

	for (unsigned l = 0; l < level; l++)
		sum += atomic_load_relaxed(&counts->moved[l]);
	return sum;
}

/* Movements of the CPU that is waited for; if it is not known, of all CPUs but this one. */
static u32 moved_for(const struct wait *wait, cpu_t culprit)
{
	u32 sum = 0;
	cpu_t cpu;

	if (culprit != CPU_NONE)
		return moved_below(wait->level, culprit);
	cpumask_foreach(cpu, &cpus_online) {
		if (cpu != this_cpu()->id)
			sum += moved_below(wait->level, cpu);
	}
	return sum;
}

/* Compare with the last check: true if anything has changed. */
static bool has_moved(struct wait *wait, cpu_t culprit)
{
	const u32 moved = moved_for(wait, culprit);
	const bool same = culprit == wait->whose;
	const bool any = wait->ahead < wait->queue || (same && moved != wait->moved) ||
			 (!same && wait->level > WAIT_LOCK);

	wait->moved = moved;
	wait->whose = culprit;
	wait->queue = wait->ahead;
	return any;
}

struct wait wait_begin(enum wait_level level, const char *what)
{
	const u64 now = clock_ns();

	count_begun(level);
	return (struct wait){.what = what,
			     .level = level,
			     .start = now,
			     .since = now,
			     .deadline_ns = wait_deadline_cpus(),
			     .bound = wait_bound(level),
			     .soft = level == WAIT_ROUND || level == WAIT_DRAINED ||
				     level >= WAIT_JOB};
}

static bool period_passed(struct wait *wait, u64 now)
{
	wait->spins++;
	if (!now)
		return wait->spins % SPINS_PER_PERIOD == 0;
	if (now - wait->since <= wait->deadline_ns)
		return false;
	wait->since = now;
	return true;
}

/*
 * One more period is over. Movement in this wait counts as movement for the waits that depend on
 * its end.
 */
static void count_period(struct wait *wait, cpu_t culprit)
{
	wait->late++;
	wait->still++;
	if (!has_moved(wait, culprit))
		return;
	wait->still = 0;
	wait->extended = true;
	wait_moved(wait->level);
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

static void wait_report(const struct wait *wait, cpu_t culprit, u64 ms)
{
	/* a soft wait may report for ever: the watchdog must not take its reports for progress */
	this_cpu()->complaining++;
	if (culprit == CPU_NONE) {
		pr_warn("still waiting for %s after %llu ms", wait->what, ms);
	} else {
		pr_warn("still waiting for %s from CPU %u after %llu ms", wait->what, culprit, ms);
		if (wait->late == 1 || wait->still == wait->bound)
			wait_print_where(culprit);
	}
	this_cpu()->complaining--;
	atomic_fetch_add(&wait_reports, 1);
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

/* True if the wait has lasted so long that the machine must be broken. */
static bool is_over(const struct wait *wait, u64 now)
{
	if (wait->endless)
		return false;
	if (!wait->soft && wait->still >= wait->bound)
		return true;
	return (wait->soft || wait->extended) && hang_seconds > 0 &&
	       now - wait->start > hang_seconds * NS_PER_S;
}

void wait_spin(struct wait *wait, cpu_t culprit)
{
	u64 now;

	if (wait->spins == 0) {
		has_moved(wait, culprit);
		wait->begun = begun_from(wait->level);
	}
	ASSERT(wait->soft || wait->endless || wait->begun == begun_from(wait->level),
	       "another wait of its level or above began during a wait for %s", wait->what);
	if (wait->spins < SPINS_BEFORE_NAP)
		cpu_relax();
	else
		cpu_nap(nap_length(wait));
	if (atomic_load_relaxed(&panic_in_progress) && !panic_is_ours())
		cpu_halt_forever();
	call_serve();

	now = clock_ns();
	if (!period_passed(wait, now))
		return;
	count_period(wait, culprit);
	wait_report(wait, culprit, (now - wait->start) / NS_PER_MS);
	if (!is_over(wait, now) || panic_is_ours())
		return;
	if (culprit == CPU_NONE)
		panic("gave up waiting for %s", wait->what);
	panic("gave up waiting for %s from CPU %u", wait->what, culprit);
}
