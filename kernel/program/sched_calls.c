/*
 * The calls for scheduling. There is no scheduler: a thread has its CPU for itself and never moves.
 *
 * Sources: Linux man-pages, sched_setaffinity(2), sched_setscheduler(2), getpriority(2).
 */
#include <arch/atomic.h>
#include <arch/barrier.h>

#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/program/calls.h"
#include "kernel/program/thread.h"
#include "kernel/program/user_copy.h"

/* OTHER, FIFO, RR, BATCH and IDLE, one bit each; those of real time. */
enum { SCHED_OTHER = 0, POLICIES = 0x2f, REALTIME = 0x06 };
enum { REALTIME_LOWEST = 1, REALTIME_HIGHEST = 99 };

static bool affinity_said; /* atomic */

static struct thread *thread_named(u64 id)
{
	return (s32)id ? thread_by_id((u32)id) : thread_current();
}

s64 call_sched_yield(const struct call_args *args)
{
	cpu_relax();
	return 0;
}

/* The mask has the CPUs that the program hears of. Returns the number of bytes written. */
s64 call_sched_getaffinity(const struct call_args *args)
{
	const u64 words = DIV_ROUND_UP(cpu_count, 64), bytes = words * sizeof(u64);

	if ((u32)args->arg[1] * 8ULL < cpu_count || args->arg[1] % sizeof(u64))
		return -EINVAL;
	if (!thread_named(args->arg[0]))
		return -ESRCH;
	for (u64 i = 0; i < words; i++) {
		u64 word = 0;

		for (u64 cpu = thread_cpu_told(i * 64); cpu < (i + 1) * 64;
		     cpu = thread_cpu_told(cpu + 1))
			word |= 1ULL << cpu % 64;
		if (user_write(args->arg[2] + i * sizeof(word), &word, sizeof(word)))
			return -EFAULT;
	}
	return (s64)bytes;
}

/* Bits and words that the program did not pass are 0. */
s64 call_sched_setaffinity(const struct call_args *args)
{
	const struct thread *thread = thread_named(args->arg[0]);
	const u64 bytes = (u32)args->arg[1];
	bool some = false, here = false;

	if (!thread)
		return -ESRCH;
	for (u64 i = 0; i < DIV_ROUND_UP(cpu_count, 64); i++) {
		const u64 from = i * sizeof(u64);
		u64 word = 0;

		if (from < bytes &&
		    user_read(&word, args->arg[2] + from, MIN(bytes - from, sizeof(word))))
			return -EFAULT;
		some |= (word & atomic_load_relaxed(&cpus_online.words[i])) != 0;
		if (thread->cpu / 64 == i)
			here = word >> thread->cpu % 64 & 1;
	}
	if (!some)
		return -EINVAL;
	if (!here && !atomic_exchange(&affinity_said, true))
		pr_info("program: sched_setaffinity() leaves out CPU %u of thread %u, which stays "
			"there: threads never move",
			thread->cpu, thread->id);
	return 0;
}

s64 call_getcpu(const struct call_args *args)
{
	const struct percpu *self = this_cpu();
	const u32 cpu = self->id, node = self->node;

	if (args->arg[0] && user_write(args->arg[0], &cpu, sizeof(cpu)))
		return -EFAULT;
	return args->arg[1] ? user_write(args->arg[1], &node, sizeof(node)) : 0;
}

s64 call_sched_getscheduler(const struct call_args *args)
{
	return thread_named(args->arg[0]) ? SCHED_OTHER : -ESRCH;
}

s64 call_sched_getparam(const struct call_args *args)
{
	const u32 priority = 0;

	if (!thread_named(args->arg[0]))
		return -ESRCH;
	return user_write(args->arg[1], &priority, sizeof(priority));
}

static bool is_in(u64 policies, u64 policy)
{
	return policy < 64 && policies >> policy & 1;
}

/* Policies that are not of real time require a priority of 0. */
s64 call_sched_setscheduler(const struct call_args *args)
{
	u32 priority;

	if (!is_in(POLICIES, args->arg[1]))
		return -EINVAL;
	if (is_in(REALTIME, args->arg[1]))
		return -EPERM;
	if (user_read(&priority, args->arg[2], sizeof(priority)))
		return -EFAULT;
	if (!thread_named(args->arg[0]))
		return -ESRCH;
	return priority == 0 ? 0 : -EINVAL;
}

static s64 priority_of(u64 policy, s64 realtime)
{
	return is_in(REALTIME, policy) ? realtime : is_in(POLICIES, policy) ? 0 : -EINVAL;
}

s64 call_sched_get_priority_max(const struct call_args *args)
{
	return priority_of(args->arg[0], REALTIME_HIGHEST);
}

s64 call_sched_get_priority_min(const struct call_args *args)
{
	return priority_of(args->arg[0], REALTIME_LOWEST);
}
