/*
 * The calls for time. Programs call clock_gettime() and gettimeofday() only for clocks that the
 * vDSO (vdso.h) does not serve.
 *
 * Sources: Linux man-pages, clock_gettime(2), clock_nanosleep(2), times(2).
 */
#include <arch/clock.h>

#include "kernel/program/calls.h"
#include "kernel/program/clocks.h"
#include "kernel/program/sleepers.h"
#include "kernel/program/thread.h"
#include "kernel/program/user_copy.h"

enum { CLOCK_PROCESS_CPUTIME_ID = 2, CLOCK_THREAD_CPUTIME_ID = 3, CLOCK_LAST = 11 };

/* REALTIME, REALTIME_COARSE, REALTIME_ALARM and TAI; the clocks that there are: all but 10. */
#define CLOCKS_CALENDAR (1u << 0 | 1u << 5 | 1u << 8 | 1u << 11)
#define CLOCKS          (0xfffu & ~(1u << 10))

/* A clock of CPU time is ~id << 3, with these bits: clock_getcpuclockid(3). */
enum { CPUCLOCK_THREAD = 1 << 2, CPUCLOCK_KIND = 3, CPUCLOCK_SCHED = 2 };

enum { TIMER_ABSTIME = 1 };

static u64 ahead_ns(s32 clock)
{
	return CLOCKS_CALENDAR >> clock & 1 ? clock_date_ns() : 0;
}

static int read_cpu_clock(s32 clock, u64 *ns)
{
	const u32 id = ~(u32)(clock >> 3);
	const bool of_thread = clock & CPUCLOCK_THREAD;
	struct thread *thread = of_thread && id ? thread_by_id(id) : thread_current();

	if ((clock & CPUCLOCK_KIND) > CPUCLOCK_SCHED || !thread ||
	    (!of_thread && id != 0 && id != program_pid()))
		return -EINVAL;
	*ns = of_thread ? clock_thread_ns(thread) : clock_program_ns();
	return 0;
}

static int read_clock(s32 clock, u64 *ns)
{
	if (clock < 0)
		return read_cpu_clock(clock, ns);
	if (clock > CLOCK_LAST || !(CLOCKS >> clock & 1))
		return -EINVAL;
	if (clock == CLOCK_PROCESS_CPUTIME_ID)
		*ns = clock_program_ns();
	else if (clock == CLOCK_THREAD_CPUTIME_ID)
		*ns = clock_thread_ns(thread_current());
	else
		*ns = clock_ns() + ahead_ns(clock);
	return 0;
}

s64 call_clock_gettime(const struct call_args *args)
{
	struct user_time time;
	u64 ns;
	int err = read_clock((s32)args->arg[0], &ns);

	if (err)
		return err;
	time = clock_time(ns, 1);
	return user_write(args->arg[1], &time, sizeof(time));
}

s64 call_clock_getres(const struct call_args *args)
{
	const struct user_time resolution = {.part = 1};
	u64 ns;
	int err = read_clock((s32)args->arg[0], &ns);

	if (err || !args->arg[1])
		return err;
	return user_write(args->arg[1], &resolution, sizeof(resolution));
}

s64 call_gettimeofday(const struct call_args *args)
{
	const struct user_time time = clock_time(clock_ns() + clock_date_ns(), NS_PER_US);
	const u64 zone = 0; /* two numbers: UTC, no daylight saving time */

	if (args->arg[0] && user_write(args->arg[0], &time, sizeof(time)))
		return -EFAULT;
	return args->arg[1] ? user_write(args->arg[1], &zone, sizeof(zone)) : 0;
}

s64 call_time(const struct call_args *args)
{
	const s64 now = (s64)((clock_ns() + clock_date_ns()) / NS_PER_S);

	if (args->arg[0] && user_write(args->arg[0], &now, sizeof(now)))
		return -EFAULT;
	return now;
}

static int sleep_for(u64 ns, user_t remaining_at)
{
	const u64 until = clock_until(ns);
	const int err = sleep_until(until);
	struct user_time left;

	if (err != -EINTR || !remaining_at)
		return err;
	left = clock_time(saturating_sub(until, clock_ns()), 1);
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
	err = clock_read(args->arg[2], 1, &ns);
	if (err)
		return err;
	if (!(args->arg[1] & TIMER_ABSTIME))
		return sleep_for(ns, args->arg[3]);
	return sleep_until(saturating_sub(ns, ahead_ns(clock)));
}
