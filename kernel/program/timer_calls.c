/*
 * alarm(), the interval timer ITIMER_REAL, and timers of POSIX. Sources: Linux man-pages, alarm(2),
 * getitimer(2), timer_create(2), timer_settime(2), timer_getoverrun(2), timer_delete(2),
 * sigevent(7).
 */
#include <arch/clock.h>

#include "kernel/program/calls.h"
#include "kernel/program/clocks.h"
#include "kernel/program/timers.h"
#include "kernel/program/user_copy.h"

enum { ITIMER_REAL = 0 };

/* struct itimerspec (`unit` 1), struct itimerval (`unit` 1000): seconds and parts of a second */
struct user_timer {
	s64 interval[2], left[2];
};

static int read_timer(user_t from, u64 unit, struct interval_timer *timer)
{
	struct user_timer in;

	if (user_read(&in, from, sizeof(in)))
		return -EFAULT;
	return clock_ns_of(in.interval, unit, &timer->interval_ns) ||
			       clock_ns_of(in.left, unit, &timer->left_ns)
		       ? -EINVAL
		       : 0;
}

/* A part of a unit counts as a whole one, so that a timer that is set has some time left. */
static int write_timer(user_t to, u64 unit, const struct interval_timer *timer)
{
	const u64 left = timer->left_ns + unit - 1, interval = timer->interval_ns;
	const struct user_timer out = {
		.interval = {(s64)(interval / NS_PER_S), (s64)(interval % NS_PER_S / unit)},
		.left = {(s64)(left / NS_PER_S), (s64)(left % NS_PER_S / unit)}};

	return user_write(to, &out, sizeof(out));
}

/* Set a timer. What it was goes to `old_at`, unless that is 0. */
static s64 exchange(int id, const struct interval_timer *timer, user_t old_at, u64 unit)
{
	struct interval_timer old;
	const int err = interval_timer_set(id, timer, &old);

	return !err && old_at ? write_timer(old_at, unit, &old) : err;
}

/* The rest of a second counts as a whole one, as alarm() must never say that none is set. */
s64 call_alarm(const struct call_args *args)
{
	const struct interval_timer timer = {.left_ns = (u32)args->arg[0] * NS_PER_S};
	struct interval_timer old;

	interval_timer_set(INTERVAL_TIMER_REAL, &timer, &old);
	return (s64)DIV_ROUND_UP(old.left_ns, NS_PER_S);
}

/* Without a new value the timer stops, as on Linux. */
s64 call_setitimer(const struct call_args *args)
{
	struct interval_timer timer = {0};
	int err = args->arg[0] == ITIMER_REAL ? 0 : -EINVAL;

	if (!err && args->arg[1])
		err = read_timer(args->arg[1], 1000, &timer);
	return err ? err : exchange(INTERVAL_TIMER_REAL, &timer, args->arg[2], 1000);
}

/* ---- timers of POSIX ---- */

enum { CLOCK_REALTIME = 0, CLOCK_MONOTONIC = 1, CLOCK_BOOTTIME = 7, CLOCK_LAST = 11 };
enum { TIMER_ABSTIME = 1 };

/* struct sigevent, without its end */
struct user_event {
	u64 value;
	s32 signal, how;
	s32 thread;
	u32 gap;
};

s64 call_timer_create(const struct call_args *args)
{
	const s32 clock = (s32)args->arg[0];
	struct user_event in = {.signal = SIGALRM};
	struct timer_event event;
	int err, id;

	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME)
		return clock <= CLOCK_LAST ? -ENOTSUP : -EINVAL;
	if (args->arg[1] && user_read(&in, args->arg[1], sizeof(in)))
		return -EFAULT;
	event = (struct timer_event){.how = in.how,
				     .thread = (u32)in.thread,
				     .signal = in.signal,
				     .value = in.value,
				     .names_itself = !args->arg[1],
				     .calendar = clock == CLOCK_REALTIME};
	if (event.how == TIMER_SENDS_TO_THREAD ? in.thread <= 0 || !thread_by_id(event.thread)
					       : event.how > TIMER_SENDS_NOTHING)
		return -EINVAL;
	if (event.how != TIMER_SENDS_NOTHING && (in.signal < 1 || in.signal > SIGNALS_MAX))
		return -EINVAL;
	id = interval_timer_make(&event);
	if (id < 0)
		return id;
	err = user_write(args->arg[2], &id, sizeof(id));
	if (err)
		interval_timer_drop(id);
	return err;
}

/* A time that has passed is due at once. */
static u64 left_until(u64 time, bool calendar)
{
	const u64 now = clock_ns() + (calendar ? clock_date_ns() : 0);

	return time > now ? time - now : 1;
}

s64 call_timer_settime(const struct call_args *args)
{
	const int id = (int)args->arg[0];
	const struct interval_timer now = interval_timer_of(id);
	struct interval_timer timer;
	int err;

	if (!now.made || !args->arg[2])
		return -EINVAL;
	err = read_timer(args->arg[2], 1, &timer);
	if (err)
		return err;
	if (args->arg[1] & TIMER_ABSTIME && timer.left_ns)
		timer.left_ns = left_until(timer.left_ns, now.calendar);
	return exchange(id, &timer, args->arg[3], 1);
}

s64 call_timer_gettime(const struct call_args *args)
{
	const struct interval_timer timer = interval_timer_of((int)args->arg[0]);

	return timer.made ? write_timer(args->arg[1], 1, &timer) : -EINVAL;
}

s64 call_timer_getoverrun(const struct call_args *args)
{
	const struct interval_timer timer = interval_timer_of((int)args->arg[0]);

	return timer.made ? (s64)timer.overruns : -EINVAL;
}

s64 call_timer_delete(const struct call_args *args)
{
	return interval_timer_drop((int)args->arg[0]);
}
