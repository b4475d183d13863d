#include "kernel/program/timers.h"

#include <arch/clock.h>
#include <arch/irq.h>

#include "kernel/core/call.h"
#include "kernel/core/lock.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/program/signal.h"

/* All atomic; written under the lock, and `at_ns` also by the interrupt. */
static struct {
	u64 at_ns, interval_ns; /* 0: not set */
	cpu_t cpu;
} alarm;

/* The look at something else, set before the program starts; at_ns is moved by its CPU only. */
static struct {
	u64 at_ns, interval_ns; /* 0: no looks */
	cpu_t cpu;
	void (*look)(void);
} looks;

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

static void look_if_due(void)
{
	const u64 at = atomic_load_relaxed(&looks.at_ns), now = clock_ns();

	if (atomic_load_relaxed(&looks.cpu) != cpu_id() || !at || now < at)
		return;
	atomic_store_relaxed(&looks.at_ns, now + looks.interval_ns);
	looks.look();
}

/* A thread that sleeps on this CPU looks at the clock, because the interrupt ends its halt. */
static void fired(void *arg)
{
	(void)arg;
	interval_timer_look();
	look_if_due();
	arm(0);
}

/* The earlier of two times, of which 0 means never. */
static u64 earlier(u64 a, u64 b)
{
	return a && b ? MIN(a, b) : MAX(a, b);
}

/*
 * Set this CPU's timer for the earliest of `until_ns` (0: none), ITIMER_REAL, if that is here, and
 * the next look. `looks` may change under this only by an interrupt, which arms the timer itself.
 */
static int arm(u64 until_ns)
{
	u64 first = until_ns, now;

	if (atomic_load_relaxed(&alarm.cpu) == cpu_id())
		first = earlier(first, atomic_load_acquire(&alarm.at_ns));
	if (atomic_load_relaxed(&looks.cpu) == cpu_id())
		first = earlier(first, atomic_load_relaxed(&looks.at_ns));
	timer_cancel();
	if (!first)
		return 0;
	now = clock_ns();
	return timer_once(first > now ? first - now : 0, fired, NULL);
}

void timers_look_every(u64 interval_ns, void (*look)(void))
{
	looks.look = look;
	looks.interval_ns = interval_ns;
	atomic_store_relaxed(&looks.cpu, cpu_id());
	atomic_store_relaxed(&looks.at_ns, clock_ns() + interval_ns);
	arm(0);
}

int timers_sleep_until(u64 until_ns)
{
	return arm(MAX(until_ns, 1ULL));
}

void timers_sleep_end(void)
{
	arm(0);
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

	atomic_store_relaxed(&looks.at_ns, 0);
	interval_timer_set(&none);
	call_cpus(&cpus_online, cancel_here, NULL);
	timer_cancel();
}
