/*
 * The calls for time. Programs call clock_gettime() and gettimeofday() only for clocks that the
 * vDSO (vdso.h) does not serve.
 *
 * Sources: Linux man-pages, clock_gettime(2), clock_nanosleep(2), times(2).
 */
#include <arch/clock.h>

#include "kernel/program/calls.h"
#include "kernel/program/clocks.h"
#include "kernel/program/thread.h"
#include "kernel/program/user_copy.h"

enum {
	CLOCK_REALTIME = 0,
	CLOCK_MONOTONIC = 1,
	CLOCK_PROCESS_CPUTIME_ID = 2,
	CLOCK_THREAD_CPUTIME_ID = 3,
	CLOCK_MONOTONIC_RAW = 4,
	CLOCK_REALTIME_COARSE = 5,
	CLOCK_MONOTONIC_COARSE = 6,
	CLOCK_BOOTTIME = 7,
	CLOCK_REALTIME_ALARM = 8,
	CLOCK_BOOTTIME_ALARM = 9,
	CLOCK_TAI = 11,
};

/* A clock of CPU time is ~id << 3, with these bits: clock_getcpuclockid(3). */
enum { CPUCLOCK_THREAD = 1 << 2, CPUCLOCK_KIND = 3, CPUCLOCK_SCHED = 2 };

enum { TIMER_ABSTIME = 1, TICKS_PER_S = 100 };

static bool is_calendar(s32 clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ||
	       clock == CLOCK_REALTIME_ALARM || clock == CLOCK_TAI;
}

static int read_cpu_clock(s32 clock, u64 *ns)
{
	const u32 id = ~(u32)(clock >> 3);
	struct thread *thread;

	if ((clock & CPUCLOCK_KIND) > CPUCLOCK_SCHED)
		return -EINVAL;
	if (!(clock & CPUCLOCK_THREAD)) {
		if (id != 0 && id != program_pid())
			return -EINVAL;
		*ns = clock_program_ns();
		return 0;
	}
	thread = id ? thread_by_id(id) : thread_current();
	if (!thread)
		return -EINVAL;
	*ns = clock_thread_ns(thread);
	return 0;
}

static int read_clock(s32 clock, u64 *ns)
{
	if (clock < 0)
		return read_cpu_clock(clock, ns);
	switch (clock) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_REALTIME_ALARM:
	case CLOCK_TAI:
		*ns = clock_ns() + clock_date_ns();
		return 0;
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_BOOTTIME:
	case CLOCK_BOOTTIME_ALARM:
		*ns = clock_ns();
		return 0;
	case CLOCK_PROCESS_CPUTIME_ID:
		*ns = clock_program_ns();
		return 0;
	case CLOCK_THREAD_CPUTIME_ID:
		*ns = clock_thread_ns(thread_current());
		return 0;
	}
	return -EINVAL;
}

s64 call_clock_gettime(const struct call_args *args)
{
	struct user_timespec time;
	u64 ns;
	int err = read_clock((s32)args->arg[0], &ns);

	if (err)
		return err;
	time = clock_timespec(ns);
	return user_write(args->arg[1], &time, sizeof(time));
}

s64 call_clock_getres(const struct call_args *args)
{
	const struct user_timespec resolution = {.nsec = 1};
	u64 ns;
	int err = read_clock((s32)args->arg[0], &ns);

	if (err || !args->arg[1])
		return err;
	return user_write(args->arg[1], &resolution, sizeof(resolution));
}

s64 call_gettimeofday(const struct call_args *args)
{
	const struct user_timeval time = clock_timeval(clock_ns() + clock_date_ns());
	const u64 zone = 0; /* two numbers: UTC, no daylight saving time */

	if (args->arg[0] && user_write(args->arg[0], &time, sizeof(time)))
		return -EFAULT;
	return args->arg[1] ? user_write(args->arg[1], &zone, sizeof(zone)) : 0;
}

s64 call_time(const struct call_args *args)
{
	const s64 now = clock_timespec(clock_ns() + clock_date_ns()).sec;

	if (args->arg[0] && user_write(args->arg[0], &now, sizeof(now)))
		return -EFAULT;
	return now;
}

/* Everything counts as time of the program itself: the kernel's share is not measured. */
s64 call_times(const struct call_args *args)
{
	const u64 tick_ns = NS_PER_S / TICKS_PER_S;
	const s64 times[4] = {(s64)(clock_program_ns() / tick_ns)};

	if (args->arg[0] && user_write(args->arg[0], times, sizeof(times)))
		return -EFAULT;
	return (s64)(clock_ns() / tick_ns);
}

/* Sleep until a time of clock_ns(). A wake that was not for the sleep changes nothing. */
static int sleep_until(u64 until_ns)
{
	struct thread *self = thread_current();
	int err = 0;

	while (!err && clock_ns() < until_ns) {
		thread_sleep_begin(self);
		err = thread_sleep(self, until_ns);
	}
	return err == -ETIMEDOUT ? 0 : err;
}

static int sleep_for(u64 ns, user_t remaining_at)
{
	const u64 until = clock_until(ns);
	const int err = sleep_until(until);
	struct user_timespec left;
	u64 now;

	if (err != -EINTR || !remaining_at)
		return err;
	now = clock_ns();
	left = clock_timespec(saturating_sub(until, now));
	return user_write(remaining_at, &left, sizeof(left)) ? -EFAULT : err;
}

s64 call_clock_nanosleep(const struct call_args *args)
{
	const s32 clock = (s32)args->arg[0];
	u64 ns, now;
	int err = read_clock(clock, &now);

	if (err || clock == CLOCK_THREAD_CPUTIME_ID)
		return -EINVAL;
	if (clock < 0 || clock == CLOCK_PROCESS_CPUTIME_ID)
		return -ENOTSUP;
	err = clock_read_interval(args->arg[2], &ns);
	if (err)
		return err;
	if (!(args->arg[1] & TIMER_ABSTIME))
		return sleep_for(ns, args->arg[3]);
	if (is_calendar(clock))
		ns -= MIN(ns, clock_date_ns());
	return sleep_until(ns);
}
