#include "kernel/program/timers.h"

#include <arch/atomic.h>
#include <arch/clock.h>
#include <arch/cpu.h>
#include <arch/timer.h>

#include "kernel/core/call.h"
#include "kernel/core/lock.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/program/signal.h"
#include "kernel/program/signal_queue.h"

/*
 * `at_ns`, `interval_ns` and `cpu` are atomic. They are written under the lock, and `at_ns` by the
 * interrupt, too. While `at_ns` is not 0, the interval and the event do not change.
 */
struct slot {
	u64 at_ns, interval_ns; /* 0: not set */
	cpu_t cpu;
	u32 made; /* by timer_create(); atomic, written under the lock */
	struct timer_event event;
	u32 queued;   /* its signal was made pending and not delivered since; atomic */
	u32 overruns; /* since then; atomic */
	u32 told;     /* with the signal that was delivered last; atomic */
};

static struct slot slots[INTERVAL_TIMERS] = {
	[INTERVAL_TIMER_REAL].event = {.how = TIMER_SENDS_TO_PROGRAM, .signal = SIGALRM}};
static u32 used = 1; /* no slot from here on was ever made; atomic */

/* The look at something else, set before the program starts; at_ns is moved by its CPU only. */
static struct {
	u64 at_ns, interval_ns; /* 0: no looks */
	cpu_t cpu;
	void (*look)(void);
} looks;

static struct spinlock lock = SPINLOCK_INIT(LOCK_LEAF);

/* An interval that is shorter counts several expiries at once. */
#define SHORTEST_NS (50 * NS_PER_US)

static int arm(void);

/* ---- expiry ---- */

static struct signal_info info_of(const struct slot *slot, const struct timer_event *event)
{
	const int id = (int)(slot - slots);

	if (id == INTERVAL_TIMER_REAL)
		return (struct signal_info){.signal = event->signal, .code = SI_KERNEL};
	return (struct signal_info){.signal = event->signal,
				    .code = SI_TIMER,
				    .pid = id,
				    .value = event->names_itself ? (u64)id : event->value};
}

static bool is_pending(const struct timer_event *event)
{
	struct thread *thread;
	u64 pending = 0;

	if (event->how == TIMER_SENDS_TO_PROGRAM)
		return signal_pending_shared() & signal_bit(event->signal);
	thread = thread_hold(event->thread);
	if (thread) {
		pending = atomic_load_acquire(&thread->pending);
		thread_let_go(thread);
	}
	return pending & signal_bit(event->signal);
}

/* A signal that was merged with another one of its number is not delivered as the timer's. */
static void send(struct slot *slot, const struct timer_event *event, u32 missed)
{
	const struct signal_info info = info_of(slot, event);
	int err;

	if (event->how == TIMER_SENDS_NOTHING)
		return;
	if (atomic_load_relaxed(&slot->queued) && is_pending(event)) {
		atomic_fetch_add(&slot->overruns, missed + 1);
		return;
	}
	atomic_store_relaxed(&slot->overruns, missed);
	atomic_store_relaxed(&slot->queued, info.code == SI_TIMER);
	err = event->how == TIMER_SENDS_TO_PROGRAM
		      ? signal_send(NULL, event->signal, &info)
		      : signal_send_to(event->thread, event->signal, &info);
	if (err < 0)
		atomic_store_relaxed(&slot->queued, 0);
}

static void look(struct slot *slot, u64 now)
{
	const u64 at = atomic_load_acquire(&slot->at_ns);
	struct timer_event event;
	u64 next = 0, expiries = 1, interval;

	if (!at || now < at)
		return;
	interval = atomic_load_acquire(&slot->interval_ns);
	event = slot->event;
	if (interval) {
		expiries = (now - at) / interval + 1;
		if (interval < SHORTEST_NS)
			expiries += SHORTEST_NS / interval;
		next = at + expiries * interval;
	}
	if (atomic_cas(&slot->at_ns, at, next))
		send(slot, &event, (u32)MIN(expiries - 1, (u64)INT32_MAX));
}

void timers_look(void)
{
	const u32 count = atomic_load_acquire(&used);

	for (u32 i = 0; i < count; i++)
		look(&slots[i], clock_ns());
}

static void look_if_due(void)
{
	const u64 at = atomic_load_relaxed(&looks.at_ns), now = clock_ns();

	if (atomic_load_relaxed(&looks.cpu) != cpu_id() || !at || now < at)
		return;
	atomic_store_relaxed(&looks.at_ns, now + looks.interval_ns);
	looks.look();
}

static void fired(void *arg)
{
	timers_look();
	look_if_due();
	arm();
}

/* ---- the CPU's timer ---- */

/* The earlier of two times, 0 being none. */
static u64 earlier(u64 a, u64 b)
{
	return a && b ? MIN(a, b) : MAX(a, b);
}

/*
 * Set this CPU's deadline for the earliest of the timers that are here and the next look.
 * Interrupts are off, because the deadline's interrupt does this, too.
 */
static int arm(void)
{
	const irq_flags_t flags = irq_save();
	const u32 count = atomic_load_acquire(&used);
	u64 first = 0;
	int err = 0;

	for (u32 i = 0; i < count; i++) {
		if (atomic_load_relaxed(&slots[i].cpu) == cpu_id())
			first = earlier(first, atomic_load_acquire(&slots[i].at_ns));
	}
	if (atomic_load_relaxed(&looks.cpu) == cpu_id())
		first = earlier(first, atomic_load_relaxed(&looks.at_ns));
	if (first)
		err = timer_set(TIMER_PROGRAM, first, fired, NULL);
	else
		timer_clear(TIMER_PROGRAM);
	irq_restore(flags);
	return err;
}

void timers_call_every(u64 interval_ns, void (*fn)(void))
{
	looks.look = fn;
	looks.interval_ns = interval_ns;
	atomic_store_relaxed(&looks.cpu, cpu_id());
	atomic_store_relaxed(&looks.at_ns, clock_ns() + interval_ns);
	arm();
}

/* ---- timers ---- */

static struct slot *slot_of(int id)
{
	if (id <= INTERVAL_TIMER_REAL || id >= INTERVAL_TIMERS ||
	    !atomic_load_acquire(&slots[id].made))
		return NULL;
	return &slots[id];
}

int interval_timer_make(const struct timer_event *event)
{
	int id = INTERVAL_TIMER_REAL + 1;

	spin_lock(&lock);
	while (id < INTERVAL_TIMERS && slots[id].made)
		id++;
	if (id < INTERVAL_TIMERS) {
		slots[id].event = *event;
		atomic_store_relaxed(&slots[id].queued, 0);
		atomic_store_relaxed(&slots[id].told, 0);
		atomic_store_release(&slots[id].made, 1);
		atomic_store_release(&used, MAX(used, (u32)id + 1));
	}
	spin_unlock(&lock);
	return id < INTERVAL_TIMERS ? id : -EAGAIN;
}

int interval_timer_drop(int id)
{
	struct slot *slot;

	spin_lock(&lock);
	slot = slot_of(id);
	if (slot) {
		atomic_exchange(&slot->at_ns, 0);
		atomic_store_release(&slot->made, 0);
	}
	spin_unlock(&lock);
	return slot ? 0 : -EINVAL;
}

const struct timer_event *interval_timer_event(int id)
{
	const struct slot *slot = slot_of(id);

	return slot ? &slot->event : NULL;
}

/* One that is due, but has not fired yet, still counts as set. */
static struct interval_timer state_of(const struct slot *slot)
{
	const u64 at = atomic_load_acquire(&slot->at_ns), now = clock_ns();
	const u64 interval = atomic_load_relaxed(&slot->interval_ns);

	return (struct interval_timer){.left_ns = !at        ? 0
						  : at > now ? at - now
							     : 1,
				       .interval_ns = interval};
}

struct interval_timer interval_timer_of(int id)
{
	return state_of(&slots[id]);
}

static void arm_here(void *arg)
{
	arm();
}

int interval_timer_set(int id, const struct interval_timer *timer, struct interval_timer *old)
{
	struct slot *slot = &slots[id];
	cpu_t before;
	int err;

	spin_lock(&lock);
	if (id != INTERVAL_TIMER_REAL && !slot_of(id)) {
		spin_unlock(&lock);
		return -EINVAL;
	}
	*old = state_of(slot);
	before = atomic_load_relaxed(&slot->cpu);
	atomic_exchange(&slot->at_ns, 0); /* no expiry of the old one from here on */
	atomic_store_relaxed(&slot->cpu, cpu_id());
	atomic_store_relaxed(&slot->interval_ns, timer->left_ns ? timer->interval_ns : 0);
	atomic_store_release(&slot->at_ns, timer->left_ns ? clock_ns() + timer->left_ns : 0);
	err = arm();
	spin_unlock(&lock);
	if (err)
		pr_warn("program: timers never expire: this machine has no timer");
	if (before != cpu_id() && old->left_ns)
		call_cpu(before, arm_here, NULL);
	return 0;
}

u32 interval_timer_overruns(int id)
{
	return atomic_load_relaxed(&slots[id].told);
}

/* A program may send such a signal itself, with any number in it. */
void interval_timer_signal_taken(struct signal_info *info)
{
	struct slot *slot = slot_of(info->pid);

	if (!slot || !atomic_exchange(&slot->queued, 0))
		return;
	info->uid = atomic_exchange(&slot->overruns, 0);
	atomic_store_relaxed(&slot->told, info->uid);
}

static void cancel_here(void *arg)
{
	timer_clear(TIMER_PROGRAM);
}

void timers_end(void)
{
	atomic_store_relaxed(&looks.at_ns, 0);
	for (int id = 0; id < (int)used; id++) {
		atomic_exchange(&slots[id].at_ns, 0);
		atomic_store_release(&slots[id].made, 0);
	}
	call_cpus(&cpus_online, cancel_here, NULL);
	timer_clear(TIMER_PROGRAM);
}
