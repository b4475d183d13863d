/*
 * The clocks of programs.
 *
 * There is no clock of the calendar. CLOCK_REALTIME is the time since the kernel's entry plus
 * program.date=, in seconds since 1970. All other clocks count from the kernel's entry; the coarse
 * ones are as fine as the others. CPU time of a thread is the time that it had its CPU: all of it
 * since it began, except in thread_sleep().
 */
#pragma once

#include "kernel/lib/types.h"
#include "kernel/program/thread.h"
#include "kernel/program/user_copy.h"

/* struct timespec (`unit` 1) or timeval (`unit` 1000): seconds and parts of `unit` nanoseconds. */
struct user_time {
	s64 sec, part;
};

/*
 * The CPU time of a thread begins; it stops, because the thread sleeps or ends; it goes on. One at
 * a time for each record.
 */
void clock_thread_begin(struct thread *thread);
void clock_thread_stop(struct thread *thread);
void clock_thread_go_on(struct thread *thread);

/* By how many nanoseconds CLOCK_REALTIME is ahead of clock_ns(). */
u64 clock_date_ns(void);

u64 clock_thread_ns(struct thread *thread); /* CPU time */
u64 clock_program_ns(void);                 /* CPU time of all threads, ended ones too */

/*
 * An interval or time in nanoseconds; more than 2^62 becomes 2^62. Returns 0, or -EINVAL for a
 * negative number or a part that is none of a second.
 */
int clock_ns_of(struct user_time time, u64 unit, u64 *ns);

/* clock_ns_of() a time in a program's memory; or -EFAULT. */
int clock_read(user_t from, u64 unit, u64 *ns);

/* clock_until() the end of an interval there; 0, for no limit, if `from` is 0. */
int clock_read_until(user_t from, u64 unit, u64 *until_ns);

/*
 * The time `ns` from now, for thread_sleep(); never 0. A call that goes on after a signal gets the
 * time that it got first (signal_call_goes_on()).
 */
u64 clock_until(u64 ns);

struct user_time clock_time(u64 ns, u64 unit);
