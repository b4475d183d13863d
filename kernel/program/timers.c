#include "kernel/program/timers.h"

#include <arch/clock.h>
#include <arch/irq.h>

#include "kernel/core/call.h"
#include "kernel/core/lock.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/program/signal.h"
#include "kernel/program/thread.h"

/* All atomic; written under the lock, and `at_ns` also by the interrupt. */
static struct {
	u64 at_ns, interval_ns; /* 0: not set */
	cpu_t cpu;
} alarm;

static struct spinlock lock = SPINLOCK_INIT(LOCK_LEAF);

static int arm(u64 until_ns);

void interval_timer_look(void)
{
	const u64 at = atomic_load_acquire(&alarm.at_ns), now = clock_ns();
	const u64 interval = atomic_load_acquire(&alarm.interval_ns);
	const struct signal_info info = {.signal = SIGALRM, .code = SI_KERNEL};
	u64 next = 0;

	if (!at || now < at)
		return;
	if (interval) /* expiries that are over count as one */
		next = at + ((now - at) / interval + 1) * interval;
	if (atomic_cas(&alarm.at_ns, at, next))
		signal_send(NULL, SIGALRM, &info);
}

static void fired(void *arg)
{
	struct thread *thread = thread_current();

	(void)arg;
	interval_timer_look();
	arm(0);
	if (thread)
		thread_wake(thread);
}

/* Set this CPU's timer for the earlier of `until_ns` (0: none) and ITIMER_REAL, if that is here. */
static int arm(u64 until_ns)
{
	const u64 at =
		atomic_load_relaxed(&alarm.cpu) == cpu_id() ? atomic_load_acquire(&alarm.at_ns) : 0;
	const u64 first = at && until_ns ? MIN(at, until_ns) : MAX(at, until_ns);
	const u64 now = clock_ns();

	timer_cancel();
	if (!first)
		return 0;
	return timer_once(first > now ? first - now : 0, fired, NULL);
}

int timers_sleep_until(u64 until_ns)
{
	return arm(MAX(until_ns, 1ULL));
}

struct interval_timer interval_timer_of(void)
{
	const u64 at = atomic_load_acquire(&alarm.at_ns), now = clock_ns();
	const u64 interval = atomic_load_relaxed(&alarm.interval_ns);

	/* One that is due, but has not fired yet, still counts as set. */
	return (struct interval_timer){.left_ns = !at        ? 0
						  : at > now ? at - now
							     : 1,
				       .interval_ns = interval};
}

static void arm_here(void *arg)
{
	(void)arg;
	arm(0);
}

struct interval_timer interval_timer_set(const struct interval_timer *timer)
{
	struct interval_timer old;
	cpu_t before;
	int err;

	spin_lock(&lock);
	old = interval_timer_of();
	before = atomic_load_relaxed(&alarm.cpu);
	atomic_exchange(&alarm.at_ns, 0); /* no expiry of the old one from here on */
	atomic_store_relaxed(&alarm.cpu, cpu_id());
	atomic_store_relaxed(&alarm.interval_ns, timer->left_ns ? timer->interval_ns : 0);
	atomic_store_release(&alarm.at_ns, timer->left_ns ? clock_ns() + timer->left_ns : 0);
	err = arm(0);
	spin_unlock(&lock);
	if (err)
		pr_warn("program: ITIMER_REAL never expires: this machine has no timer");
	if (before != cpu_id() && old.left_ns)
		call_cpu(before, arm_here, NULL);
	return old;
}

static void cancel_here(void *arg)
{
	(void)arg;
	timer_cancel();
}

void timers_end(void)
{
	const struct interval_timer none = {0};

	interval_timer_set(&none);
	call_cpus(&cpus_online, cancel_here, NULL);
	timer_cancel();
}
