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

#define LONGEST_S (1LL << 32)

/* struct itimerval */
struct user_itimer {
	struct user_timeval interval, left;
};

/* The rest of a second counts as a whole one, as alarm() must never say that none is set. */
s64 call_alarm(const struct call_args *args)
{
	const struct interval_timer timer = {.left_ns = (u32)args->arg[0] * NS_PER_S};
	struct interval_timer old;

	interval_timer_set(INTERVAL_TIMER_REAL, &timer, &old);
	return (s64)DIV_ROUND_UP(old.left_ns, NS_PER_S);
}

static struct user_itimer as_user(const struct interval_timer *timer)
{
	return (struct user_itimer){.interval = clock_timeval(timer->interval_ns),
				    .left = clock_timeval(timer->left_ns + NS_PER_US - 1)};
}

static int as_ns(const struct user_timeval *time, u64 *ns)
{
	if (time->sec < 0 || time->usec < 0 || time->usec >= (s64)(NS_PER_S / NS_PER_US))
		return -EINVAL;
	*ns = (u64)MIN(time->sec, LONGEST_S) * NS_PER_S + (u64)time->usec * NS_PER_US;
	return 0;
}

s64 call_getitimer(const struct call_args *args)
{
	const struct interval_timer timer = interval_timer_of(INTERVAL_TIMER_REAL);
	const struct user_itimer out = as_user(&timer);

	if (args->arg[0] != ITIMER_REAL)
		return -EINVAL;
	return user_write(args->arg[1], &out, sizeof(out));
}

/* Without a new value the timer stops, as on Linux. */
s64 call_setitimer(const struct call_args *args)
{
	struct user_itimer in = {0}, out;
	struct interval_timer timer, old;

	if (args->arg[0] != ITIMER_REAL)
		return -EINVAL;
	if (args->arg[1] && user_read(&in, args->arg[1], sizeof(in)))
		return -EFAULT;
	if (as_ns(&in.interval, &timer.interval_ns) || as_ns(&in.left, &timer.left_ns))
		return -EINVAL;
	interval_timer_set(INTERVAL_TIMER_REAL, &timer, &old);
	out = as_user(&old);
	return args->arg[2] ? user_write(args->arg[2], &out, sizeof(out)) : 0;
}

/* ---- timers of POSIX ---- */

enum { CLOCK_REALTIME = 0, CLOCK_MONOTONIC = 1, CLOCK_BOOTTIME = 7, CLOCK_LAST = 11 };
enum { SIGEV_SIGNAL = 0, SIGEV_NONE = 1, SIGEV_THREAD_ID = 4 };
enum { TIMER_ABSTIME = 1 };

/* struct sigevent, without its end */
struct user_event {
	u64 value;
	s32 signal, how;
	s32 thread;
	u32 gap;
};

/* struct itimerspec */
struct user_timer {
	struct user_timespec interval, left;
};

static int as_event(const struct user_event *in, struct timer_event *event)
{
	event->signal = in->signal;
	event->value = in->value;
	event->thread = (u32)in->thread;
	switch (in->how) {
	case SIGEV_SIGNAL:
		event->how = TIMER_SENDS_TO_PROGRAM;
		break;
	case SIGEV_NONE:
		event->how = TIMER_SENDS_NOTHING;
		return 0;
	case SIGEV_THREAD_ID:
		event->how = TIMER_SENDS_TO_THREAD;
		if (in->thread <= 0 || !thread_by_id(event->thread))
			return -EINVAL;
		break;
	default:
		return -EINVAL;
	}
	return in->signal >= 1 && in->signal <= SIGNALS_MAX ? 0 : -EINVAL;
}

s64 call_timer_create(const struct call_args *args)
{
	const s32 clock = (s32)args->arg[0];
	struct timer_event event = {.calendar = clock == CLOCK_REALTIME};
	struct user_event in = {.signal = SIGALRM};
	int err, id;

	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME)
		return clock <= CLOCK_LAST ? -ENOTSUP : -EINVAL;
	if (args->arg[1] && user_read(&in, args->arg[1], sizeof(in)))
		return -EFAULT;
	event.names_itself = !args->arg[1];
	err = as_event(&in, &event);
	if (err)
		return err;
	id = interval_timer_make(&event);
	if (id < 0)
		return id;
	err = user_write(args->arg[2], &id, sizeof(id));
	if (err)
		interval_timer_drop(id);
	return err;
}

static int as_left(const struct user_timespec *time, u64 *ns)
{
	if (time->sec < 0 || time->nsec < 0 || (u64)time->nsec >= NS_PER_S)
		return -EINVAL;
	*ns = (u64)MIN(time->sec, LONGEST_S) * NS_PER_S + (u64)time->nsec;
	return 0;
}

/* A time that has passed is due at once. */
static u64 left_until(u64 time, bool calendar)
{
	const u64 now = clock_ns() + (calendar ? clock_date_ns() : 0);

	return time > now ? time - now : 1;
}

static struct user_timer as_user_timer(const struct interval_timer *timer)
{
	return (struct user_timer){.interval = clock_timespec(timer->interval_ns),
				   .left = clock_timespec(timer->left_ns)};
}

s64 call_timer_settime(const struct call_args *args)
{
	const int id = (int)args->arg[0];
	const struct timer_event *event = interval_timer_event(id);
	struct user_timer in, out;
	struct interval_timer timer, old;

	if (!event || !args->arg[2])
		return -EINVAL;
	if (user_read(&in, args->arg[2], sizeof(in)))
		return -EFAULT;
	if (as_left(&in.interval, &timer.interval_ns) || as_left(&in.left, &timer.left_ns))
		return -EINVAL;
	if (args->arg[1] & TIMER_ABSTIME && timer.left_ns)
		timer.left_ns = left_until(timer.left_ns, event->calendar);
	if (interval_timer_set(id, &timer, &old))
		return -EINVAL;
	out = as_user_timer(&old);
	return args->arg[3] ? user_write(args->arg[3], &out, sizeof(out)) : 0;
}

s64 call_timer_gettime(const struct call_args *args)
{
	const int id = (int)args->arg[0];
	struct interval_timer timer;
	struct user_timer out;

	if (!interval_timer_event(id))
		return -EINVAL;
	timer = interval_timer_of(id);
	out = as_user_timer(&timer);
	return user_write(args->arg[1], &out, sizeof(out));
}

s64 call_timer_getoverrun(const struct call_args *args)
{
	const int id = (int)args->arg[0];

	return interval_timer_event(id) ? (s64)interval_timer_overruns(id) : -EINVAL;
}

s64 call_timer_delete(const struct call_args *args)
{
	return interval_timer_drop((int)args->arg[0]);
}
