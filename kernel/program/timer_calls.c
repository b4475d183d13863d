/*
 * alarm() and interval timers. There is one, ITIMER_REAL. Sources: Linux man-pages, alarm(2),
 * getitimer(2).
 */
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
static s64 call_alarm(const struct call_args *args)
{
	const struct interval_timer timer = {.left_ns = (u32)args->arg[0] * NS_PER_S};
	const struct interval_timer old = interval_timer_set(&timer);

	return (s64)DIV_ROUND_UP(old.left_ns, NS_PER_S);
}
CALL(alarm, 37);

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

static s64 call_getitimer(const struct call_args *args)
{
	const struct interval_timer timer = interval_timer_of();
	const struct user_itimer out = as_user(&timer);

	if (args->arg[0] != ITIMER_REAL)
		return -EINVAL;
	return user_write(args->arg[1], &out, sizeof(out));
}
CALL(getitimer, 36);

/* Without a new value the timer stops, as on Linux. */
static s64 call_setitimer(const struct call_args *args)
{
	struct user_itimer in = {0}, out;
	struct interval_timer timer, old;

	if (args->arg[0] != ITIMER_REAL)
		return -EINVAL;
	if (args->arg[1] && user_read(&in, args->arg[1], sizeof(in)))
		return -EFAULT;
	if (as_ns(&in.interval, &timer.interval_ns) || as_ns(&in.left, &timer.left_ns))
		return -EINVAL;
	old = interval_timer_set(&timer);
	out = as_user(&old);
	return args->arg[2] ? user_write(args->arg[2], &out, sizeof(out)) : 0;
}
CALL(setitimer, 38);
