/*
 * Timers, and the calls for them: see timers.h. Sources: Linux man-pages, alarm(2), setitimer(2),
 * timer_create(2), timer_settime(2), timer_getoverrun(2), timer_delete(2), sigevent(7).
 */
#include "kernel/program/timers.h"

#include <arch/clock.h>
#include <arch/timer.h>

#include "kernel/core/call.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"
#include "kernel/program/calls.h"
#include "kernel/program/clocks.h"
#include "kernel/program/handler_lock.h"
#include "kernel/program/signal.h"
#include "kernel/program/user_copy.h"

/* The last one is the look. */
enum { REAL = 0, LOOK = INTERVAL_TIMERS, SLOTS };
enum { CLOCK_REALTIME = 0, CLOCK_MONOTONIC = 1, CLOCK_BOOTTIME = 7, CLOCK_LAST = 11 };
enum { TIMER_ABSTIME = 1 };

/* struct sigevent, without its end */
struct timer_event {
	u64 value;
	s32 signal;
	enum { SIGEV_SIGNAL, SIGEV_NONE, SIGEV_THREAD_ID = 4 } how;
	s32 thread;
	u32 gap;
};

static u32 lock;
static struct slot {
	u64 at_ns, interval_ns; /* 0: not set */
	bool made;              /* by timer_create() */
	bool calendar;          /* times are of CLOCK_REALTIME */
	u32 told;               /* overruns of the signal that was delivered last */
	struct timer_event event;
} slots[SLOTS];
static cpu_t home; /* the CPU that has the deadline */
static void (*look)(void);

/*
 * After an interrupt the program has its CPU for 8 times as long as the interrupt took, between
 * these bounds. The upper one is for a virtual machine that was stopped meanwhile.
 */
#define REST_LEAST_NS (50 * NS_PER_US)
#define REST_MOST_NS  (10 * NS_PER_MS)
static u64 rests_until; /* of the CPU with the deadline */

/* ---- expiry; the lock is held ---- */

static void send(const struct slot *slot, u32 missed)
{
	const struct timer_event *event = &slot->event;
	const int id = (int)(slot - slots);
	struct signal_info info = {.signal = event->signal, .code = SI_KERNEL};

	if (id != REAL) {
		info.code = SI_TIMER;
		info.pid = id;
		info.uid = missed;
		info.value = event->value;
	}
	if (event->how == SIGEV_SIGNAL)
		signal_send(NULL, event->signal, &info);
	else if (event->how == SIGEV_THREAD_ID)
		signal_send_to((u32)event->thread, event->signal, &info);
}

static bool expire(struct slot *slot, u64 now)
{
	const u64 interval = slot->interval_ns;
	u64 expiries = 1;

	if (!slot->at_ns || now < slot->at_ns)
		return false;
	if (interval)
		expiries += (now - slot->at_ns) / interval;
	slot->at_ns = interval ? slot->at_ns + expiries * interval : 0;
	send(slot, (u32)MIN(expiries - 1, (u64)INT32_MAX));
	return true;
}

/* ---- the deadline ---- */

void timers_look(void)
{
	const irq_flags_t flags = handler_lock(&lock);
	const u64 now = clock_ns();
	bool looks = false;

	for (struct slot *slot = slots; slot < slots + SLOTS; slot++)
		looks = expire(slot, now);
	handler_unlock(&lock, flags);
	if (looks)
		look();
}

static void arm(void *err);

static void fired(void *arg)
{
	const u64 began = clock_ns();
	u64 now;
	int err;

	timers_look();
	now = clock_ns();
	rests_until = now + MIN(MAX(8 * (now - began), REST_LEAST_NS), REST_MOST_NS);
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
		*(int *)err = timer_set(TIMER_PROGRAM, MAX(first, rests_until), fired, NULL);
	else
		timer_clear(TIMER_PROGRAM);
	handler_unlock(&lock, flags);
}

void timers_begin(void)
{
	home = cpu_id();
	slots[REAL].event.signal = SIGALRM;
	slots[LOOK].event.how = SIGEV_NONE;
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
	if (id < 0 || id >= INTERVAL_TIMERS || (id != REAL && !slots[id].made))
		return NULL;
	return &slots[id];
}

/* The time to the next expiry. A timer that is due, but has not fired, still counts as set. */
static u64 left_of(const struct slot *slot)
{
	const u64 now = clock_ns();

	return !slot->at_ns ? 0 : slot->at_ns > now ? slot->at_ns - now : 1;
}

/* Times of a timer in ns: from one expiry to the next, and to the next one. */
struct times {
	u64 interval, left;
};

/* Set a timer; *old is what it was. */
static int set(int id, const struct times *times, bool absolute, struct times *old)
{
	const irq_flags_t flags = handler_lock(&lock);
	struct slot *slot = slot_of(id);
	int err = 0;

	if (slot) {
		const u64 ahead = slot->calendar ? clock_date_ns() : 0;

		*old = (struct times){slot->interval_ns, left_of(slot)};
		slot->at_ns = !times->left ? 0
			      : absolute   ? MAX(saturating_sub(times->left, ahead), 1ULL)
					   : clock_ns() + times->left;
		slot->interval_ns = times->left ? times->interval : 0;
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
void timer_signal_taken(const struct signal_info *info)
{
	const irq_flags_t flags = handler_lock(&lock);
	struct slot *slot = slot_of(info->pid);

	if (slot)
		slot->told = info->uid;
	handler_unlock(&lock, flags);
}

/* ---- calls ---- */

/* struct itimerspec (`unit` 1), struct itimerval (`unit` 1000): seconds and parts of a second */
struct user_timer {
	struct user_time interval, left;
};

static int read_times(user_t from, u64 unit, struct times *times)
{
	struct user_timer in;
	int err = user_read(&in, from, sizeof(in));

	if (!err)
		err = clock_ns_of(in.interval, unit, &times->interval);
	return err ? err : clock_ns_of(in.left, unit, &times->left);
}

/* A part of a unit counts as a whole one, so that a timer that is set has some time left. */
static int write_times(user_t to, u64 unit, const struct times *times)
{
	const struct user_timer out = {.interval = clock_time(times->interval, unit),
				       .left = clock_time(times->left + unit - 1, unit)};

	return to ? user_write(to, &out, sizeof(out)) : 0;
}

/* The rest of a second counts as a whole one, as alarm() must never say that none is set. */
s64 call_alarm(const struct call_args *args)
{
	const struct times times = {.left = (u32)args->arg[0] * NS_PER_S};
	struct times old;

	set(REAL, &times, false, &old);
	return (s64)DIV_ROUND_UP(old.left, NS_PER_S);
}

/* Without a new value the timer stops, as on Linux. */
s64 call_setitimer(const struct call_args *args)
{
	struct times times = {0}, old;
	int err = args->arg[0] == REAL ? 0 : -EINVAL;

	if (!err && args->arg[1])
		err = read_times(args->arg[1], 1000, &times);
	if (!err)
		err = set(REAL, &times, false, &old);
	return err ? err : write_times(args->arg[2], 1000, &old);
}

/* The number of a new timer, or -EAGAIN. With `named`, the value of its signal is that number. */
static int make(const struct slot *as, bool named)
{
	const irq_flags_t flags = handler_lock(&lock);
	int id = REAL + 1;

	while (id < INTERVAL_TIMERS && slots[id].made)
		id++;
	if (id < INTERVAL_TIMERS) {
		slots[id] = *as;
		if (named)
			slots[id].event.value = (u64)id;
	}
	handler_unlock(&lock, flags);
	return id < INTERVAL_TIMERS ? id : -EAGAIN;
}

static int drop(int id)
{
	const irq_flags_t flags = handler_lock(&lock);
	struct slot *slot = id == REAL ? NULL : slot_of(id);

	if (slot)
		*slot = (struct slot){0};
	handler_unlock(&lock, flags);
	return slot ? 0 : -EINVAL;
}

static bool is_possible(const struct timer_event *event)
{
	if (event->how == SIGEV_NONE)
		return true;
	if (event->signal < 1 || event->signal > SIGNALS_MAX)
		return false;
	return event->how == SIGEV_SIGNAL || (event->how == SIGEV_THREAD_ID && event->thread > 0 &&
					      thread_by_id((u32)event->thread));
}

s64 call_timer_create(const struct call_args *args)
{
	const s32 clock = (s32)args->arg[0];
	struct slot slot = {
		.made = true, .calendar = clock == CLOCK_REALTIME, .event = {.signal = SIGALRM}};
	int err, id;

	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME)
		return clock <= CLOCK_LAST ? -ENOTSUP : -EINVAL;
	if (args->arg[1] && user_read(&slot.event, args->arg[1], sizeof(slot.event)))
		return -EFAULT;
	if (!is_possible(&slot.event))
		return -EINVAL;
	id = make(&slot, !args->arg[1]);
	if (id < 0)
		return id;
	err = user_write(args->arg[2], &id, sizeof(id));
	if (err)
		drop(id);
	return err;
}

s64 call_timer_settime(const struct call_args *args)
{
	const int id = (int)args->arg[0];
	struct times times, old;
	int err = id == REAL || !args->arg[2] ? -EINVAL : read_times(args->arg[2], 1, &times);

	if (!err)
		err = set(id, &times, args->arg[1] & TIMER_ABSTIME, &old);
	return err ? err : write_times(args->arg[3], 1, &old);
}

/* A timer that timer_create() made, as it is now; false if there is none. */
static bool look_at(int id, struct slot *now)
{
	const irq_flags_t flags = handler_lock(&lock);
	const struct slot *slot = slot_of(id);

	*now = slot ? *slot : (struct slot){0};
	handler_unlock(&lock, flags);
	return now->made;
}

s64 call_timer_gettime(const struct call_args *args)
{
	struct slot slot;

	if (!look_at((int)args->arg[0], &slot))
		return -EINVAL;
	if (!args->arg[1])
		return -EFAULT;
	return write_times(args->arg[1], 1, &(struct times){slot.interval_ns, left_of(&slot)});
}

s64 call_timer_getoverrun(const struct call_args *args)
{
	struct slot slot;

	return look_at((int)args->arg[0], &slot) ? (s64)slot.told : -EINVAL;
}

s64 call_timer_delete(const struct call_args *args)
{
	return drop((int)args->arg[0]);
}
