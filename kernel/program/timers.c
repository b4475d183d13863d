#include "kernel/program/timers.h"

#include <arch/clock.h>
#include <arch/timer.h>

#include "kernel/core/call.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"
#include "kernel/program/handler_lock.h"
#include "kernel/program/signal.h"
#include "kernel/program/signal_queue.h"

/* The last one is the look. */
enum { LOOK = INTERVAL_TIMERS, SLOTS };

static u32 lock;
static struct slot {
	u64 at_ns, interval_ns; /* 0: not set */
	bool made;              /* by timer_create() */
	bool queued;            /* its signal was made pending and not delivered since */
	u32 overruns;           /* since then */
	u32 told;               /* with the signal that was delivered last */
	struct timer_event event;
} slots[SLOTS];
static cpu_t home; /* the CPU that has the deadline */
static void (*look)(void);

/* An interval that is shorter counts several expiries at once. */
#define SHORTEST_NS (50 * NS_PER_US)

/* ---- expiry; the lock is held ---- */

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
static void send(struct slot *slot, u32 missed)
{
	const struct timer_event *event = &slot->event;
	const int id = (int)(slot - slots);
	struct signal_info info = {.signal = event->signal, .code = SI_KERNEL};
	int err;

	if (event->how == TIMER_SENDS_NOTHING)
		return;
	if (slot->queued && is_pending(event)) {
		slot->overruns += missed + 1;
		return;
	}
	if (id != INTERVAL_TIMER_REAL) {
		info.code = SI_TIMER;
		info.pid = id;
		info.value = event->names_itself ? (u64)id : event->value;
	}
	err = event->how == TIMER_SENDS_TO_PROGRAM
		      ? signal_send(NULL, event->signal, &info)
		      : signal_send_to(event->thread, event->signal, &info);
	slot->overruns = missed;
	slot->queued = info.code == SI_TIMER && err == 0;
}

static bool expire(struct slot *slot, u64 now)
{
	const u64 interval = slot->interval_ns;
	u64 expiries = 1;

	if (!slot->at_ns || now < slot->at_ns)
		return false;
	if (interval)
		expiries += (now - slot->at_ns) / interval;
	if (interval && interval < SHORTEST_NS)
		expiries += SHORTEST_NS / interval;
	slot->at_ns = interval ? slot->at_ns + expiries * interval : 0;
	send(slot, (u32)MIN(expiries - 1, (u64)INT32_MAX));
	return true;
}

/* ---- the deadline ---- */

void timers_look(void)
{
	const irq_flags_t flags = handler_lock(&lock);
	bool looks = false;

	for (struct slot *slot = slots; slot < slots + SLOTS; slot++)
		looks = expire(slot, clock_ns());
	handler_unlock(&lock, flags);
	if (looks)
		look();
}

static void arm(void *err);

static void fired(void *arg)
{
	int err;

	timers_look();
	arm(&err);
}

/* Set the deadline for the earliest of the timers. On its CPU; *err is that of timer_set(). */
static void arm(void *err)
{
	const irq_flags_t flags = handler_lock(&lock);
	u64 first = 0;

	for (const struct slot *slot = slots; slot < slots + SLOTS; slot++)
		if (slot->at_ns && (!first || slot->at_ns < first))
			first = slot->at_ns;
	*(int *)err = 0;
	if (first)
		*(int *)err = timer_set(TIMER_PROGRAM, first, fired, NULL);
	else
		timer_clear(TIMER_PROGRAM);
	handler_unlock(&lock, flags);
}

void timers_begin(void)
{
	home = cpu_id();
	slots[INTERVAL_TIMER_REAL].event.signal = SIGALRM;
	slots[LOOK].event.how = TIMER_SENDS_NOTHING;
}

void timers_call_every(u64 interval_ns, void (*fn)(void))
{
	int err;

	timers_begin();
	look = fn;
	slots[LOOK].interval_ns = interval_ns;
	slots[LOOK].at_ns = clock_ns() + interval_ns;
	arm(&err);
}

void timers_end(void)
{
	const irq_flags_t flags = handler_lock(&lock);

	memset(slots, 0, sizeof(slots));
	timer_clear(TIMER_PROGRAM);
	handler_unlock(&lock, flags);
}

/* ---- timers ---- */

/* NULL if there is none. Lock held. */
static struct slot *slot_of(int id)
{
	if (id < 0 || id >= INTERVAL_TIMERS || (id != INTERVAL_TIMER_REAL && !slots[id].made))
		return NULL;
	return &slots[id];
}

int interval_timer_make(const struct timer_event *event)
{
	const irq_flags_t flags = handler_lock(&lock);
	int id = INTERVAL_TIMER_REAL + 1;

	while (id < INTERVAL_TIMERS && slots[id].made)
		id++;
	if (id < INTERVAL_TIMERS)
		slots[id] = (struct slot){.made = true, .event = *event};
	handler_unlock(&lock, flags);
	return id < INTERVAL_TIMERS ? id : -EAGAIN;
}

int interval_timer_drop(int id)
{
	const irq_flags_t flags = handler_lock(&lock);
	struct slot *slot = slot_of(id);
	const bool made = slot && slot->made;

	if (made)
		*slot = (struct slot){0};
	handler_unlock(&lock, flags);
	return made ? 0 : -EINVAL;
}

/* One that is due, but has not fired yet, still counts as set. Lock held. */
static struct interval_timer state_of(const struct slot *slot)
{
	const u64 now = clock_ns();

	return (struct interval_timer){.left_ns = !slot->at_ns        ? 0
						  : slot->at_ns > now ? slot->at_ns - now
								      : 1,
				       .interval_ns = slot->interval_ns,
				       .made = slot->made,
				       .calendar = slot->event.calendar,
				       .overruns = slot->told};
}

struct interval_timer interval_timer_of(int id)
{
	const irq_flags_t flags = handler_lock(&lock);
	const struct slot *slot = slot_of(id);
	const struct interval_timer timer = slot ? state_of(slot) : (struct interval_timer){0};

	handler_unlock(&lock, flags);
	return timer;
}

int interval_timer_set(int id, const struct interval_timer *timer, struct interval_timer *old)
{
	const irq_flags_t flags = handler_lock(&lock);
	struct slot *slot = slot_of(id);
	int err = 0;

	if (slot) {
		*old = state_of(slot);
		slot->at_ns = timer->left_ns ? clock_ns() + timer->left_ns : 0;
		slot->interval_ns = timer->left_ns ? timer->interval_ns : 0;
	}
	handler_unlock(&lock, flags);
	if (!slot)
		return -EINVAL;
	if (home == cpu_id())
		arm(&err);
	else
		call_cpu(home, arm, &err);
	if (err)
		pr_warn("program: timers never expire: this machine has no timer");
	return 0;
}

/* A program may send such a signal itself, with any number in it. */
void interval_timer_signal_taken(struct signal_info *info)
{
	const irq_flags_t flags = handler_lock(&lock);
	struct slot *slot = slot_of(info->pid);

	if (slot && slot->queued) {
		slot->queued = false;
		info->uid = slot->told = slot->overruns;
		slot->overruns = 0;
	}
	handler_unlock(&lock, flags);
}
