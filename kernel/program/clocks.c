#include "kernel/program/clocks.h"

#include <arch/atomic.h>
#include <arch/clock.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/percpu.h"

/* The default is 2026-01-01, 00:00 UTC: the same in every run. */
static u64 date_s = 1767225600;
#define DATE_MAX 8000000000ULL /* in the year 2223 */

OPTION_U64(program.date, date_s, 0, DATE_MAX,
	   "seconds since 1970 at the kernel's entry, for the clock of programs",
	   .boot_only = true);

u64 clock_date_ns(void)
{
	return date_s * NS_PER_S;
}

/*
 * The CPU time of all threads that a CPU ever had is one word: while the time stands still, the
 * time itself; while it goes on, RUNS and the clock's time from which it counts.
 *
 * A CPU that reads the clock and stops its time is a moment late for another one that looks. `told`
 * is the highest time that any caller got, and no caller gets less.
 */
#define RUNS (1ULL << 63)

static u64 spent(struct thread *record)
{
	const u64 word = atomic_load_relaxed(&record->spent);
	const u64 ns = word & RUNS ? clock_ns() - (word & ~RUNS) : word;
	u64 told = atomic_load_relaxed(&record->told);

	while (ns > told && !atomic_cas(&record->told, told, ns))
		told = atomic_load_relaxed(&record->told);
	return MAX(ns, told);
}

void clock_thread_begin(struct thread *thread)
{
	atomic_store_relaxed(&thread->spent_before, spent(thread));
	clock_thread_go_on(thread);
}

void clock_thread_stop(struct thread *thread)
{
	atomic_store_relaxed(&thread->spent, spent(thread));
}

void clock_thread_go_on(struct thread *thread)
{
	atomic_store_relaxed(&thread->spent, RUNS | (clock_ns() - spent(thread)));
}

u64 clock_thread_ns(struct thread *thread)
{
	return spent(thread) - atomic_load_relaxed(&thread->spent_before);
}

u64 clock_program_ns(void)
{
	u64 sum = 0;

	for (cpu_t cpu = 0; cpu < cpu_count; cpu++) {
		struct thread *record = thread_on(cpu);

		sum += record ? spent(record) : 0;
	}
	return sum;
}

#define LONGEST_NS (1ULL << 62)

int clock_ns_of(struct user_time time, u64 unit, u64 *ns)
{
	if (time.sec < 0 || time.part < 0 || (u64)time.part >= NS_PER_S / unit)
		return -EINVAL;
	*ns = (u64)time.sec >= LONGEST_NS / NS_PER_S
		      ? LONGEST_NS
		      : (u64)time.sec * NS_PER_S + (u64)time.part * unit;
	return 0;
}

int clock_read(user_t from, u64 unit, u64 *ns)
{
	struct user_time time;

	return user_read(&time, from, sizeof(time)) ? -EFAULT : clock_ns_of(time, unit, ns);
}

int clock_read_until(user_t from, u64 unit, u64 *until_ns)
{
	u64 ns = 0;
	const int err = from ? clock_read(from, unit, &ns) : 0;

	*until_ns = from ? clock_until(ns) : 0;
	return err;
}

u64 clock_until(u64 ns)
{
	struct thread *self = thread_current();

	if (self->until_ns == 0)
		self->until_ns = MAX(clock_ns() + ns, 1ULL);
	return self->until_ns;
}

struct user_time clock_time(u64 ns, u64 unit)
{
	return (struct user_time){(s64)(ns / NS_PER_S), (s64)(ns % NS_PER_S / unit)};
}
