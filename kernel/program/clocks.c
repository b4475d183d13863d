#include "kernel/program/clocks.h"

#include <arch/atomic.h>
#include <arch/clock.h>

#include "kernel/core/cmdline.h"

/* The default is 2026-01-01, 00:00 UTC: the same in every run. */
static u64 date_s = 1767225600;
#define DATE_MAX 8000000000ULL /* in the year 2223 */

OPTION_U64(date, date_s, 0, DATE_MAX,
	   "seconds since 1970 at the kernel's entry, for the clock of programs",
	   .boot_only = true);

static u64 ended_ns; /* CPU time of threads that have ended; atomic */

void clocks_begin(void)
{
	atomic_store_relaxed(&ended_ns, 0);
}

void clocks_thread_ended(const struct thread *thread)
{
	atomic_add_relaxed(&ended_ns, clock_thread_ns(thread));
}

u64 clock_date_ns(void)
{
	return date_s * NS_PER_S;
}

u64 clock_thread_ns(const struct thread *thread)
{
	return clock_ns() - atomic_load_relaxed(&thread->began_ns) -
	       atomic_load_relaxed(&thread->slept_ns);
}

u64 clock_program_ns(void)
{
	u64 sum = atomic_load_relaxed(&ended_ns);

	for (struct thread *thread = thread_next(NULL); thread; thread = thread_next(thread))
		sum += clock_thread_ns(thread);
	return sum;
}

#define LONGEST_NS (1ULL << 62)

int clock_read_interval(user_t from, u64 *ns)
{
	struct user_timespec time;

	if (user_read(&time, from, sizeof(time)))
		return -EFAULT;
	if (time.sec < 0 || time.nsec < 0 || (u64)time.nsec >= NS_PER_S)
		return -EINVAL;
	*ns = (u64)time.sec >= LONGEST_NS / NS_PER_S ? LONGEST_NS
						     : (u64)time.sec * NS_PER_S + (u64)time.nsec;
	return 0;
}

u64 clock_until(u64 ns)
{
	return MAX(clock_ns() + ns, 1ULL);
}

struct user_timespec clock_timespec(u64 ns)
{
	return (struct user_timespec){.sec = (s64)(ns / NS_PER_S), .nsec = (s64)(ns % NS_PER_S)};
}

struct user_timeval clock_timeval(u64 ns)
{
	return (struct user_timeval){.sec = (s64)(ns / NS_PER_S),
				     .usec = (s64)(ns % NS_PER_S / NS_PER_US)};
}
