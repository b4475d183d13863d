/*
 * Limits, what was used, and what the machine has. Sources: Linux man-pages, getrlimit(2),
 * getrusage(2), sysinfo(2).
 */
#include "kernel/program/limits.h"

#include <arch/atomic.h>
#include <arch/clock.h>

#include "kernel/core/lock.h"
#include "kernel/program/calls.h"
#include "kernel/program/clocks.h"
#include "kernel/program/program_space.h"
#include "mm/vm/pages.h"
#include "kernel/program/thread.h"
#include "kernel/program/user_copy.h"
#include "mm/mm.h"

enum { FILES_SOFT = 1024, FILES_HARD = 4096 };

static struct spinlock lock = SPINLOCK_INIT(LOCK_LEAF);
static struct limit_pair limits[RLIMITS];

void limits_begin(void)
{
	spin_lock(&lock);
	for (unsigned i = 0; i < RLIMITS; i++)
		limits[i] = (struct limit_pair){.soft = RLIMIT_NONE, .hard = RLIMIT_NONE};
	limits[RLIMIT_STACK].soft = MIB(8);
	limits[RLIMIT_NOFILE] = (struct limit_pair){.soft = FILES_SOFT, .hard = FILES_HARD};
	limits[RLIMIT_CORE].soft = 0;
	limits[RLIMIT_NICE] = limits[RLIMIT_RTPRIO] = (struct limit_pair){0};
	spin_unlock(&lock);
}

u64 limit_soft(enum limit limit)
{
	return atomic_load_relaxed(&limits[limit].soft);
}

/* The old limit goes to `old_at`, a new one comes from `new_at`; either may be 0. */
static s64 limit_exchange(u64 limit, user_t new_at, user_t old_at)
{
	struct limit_pair pair, old;

	if (limit >= RLIMITS)
		return -EINVAL;
	if (new_at && user_read(&pair, new_at, sizeof(pair)))
		return -EFAULT;
	if (new_at && pair.soft > pair.hard)
		return -EINVAL;
	spin_lock(&lock);
	old = limits[limit];
	if (new_at) {
		atomic_store_relaxed(&limits[limit].soft, pair.soft);
		limits[limit].hard = pair.hard;
	}
	spin_unlock(&lock);
	return old_at ? user_write(old_at, &old, sizeof(old)) : 0;
}

s64 call_setrlimit(const struct call_args *args)
{
	return args->arg[1] ? limit_exchange(args->arg[0], args->arg[1], 0) : -EFAULT;
}

s64 call_prlimit64(const struct call_args *args)
{
	const s32 pid = (s32)args->arg[0];

	if (pid != 0 && (u32)pid != program_pid())
		return -ESRCH;
	return limit_exchange(args->arg[1], args->arg[2], args->arg[3]);
}

/* struct rusage; the counts after the first are zero here. */
struct user_rusage {
	struct user_time user, system;
	s64 resident_most_kib, counts[13];
};

enum { RUSAGE_SELF = 0, RUSAGE_CHILDREN = -1, RUSAGE_THREAD = 1 };

s64 call_getrusage(const struct call_args *args)
{
	const s32 whose = (s32)args->arg[0];
	struct user_rusage usage = {0};

	if (whose != RUSAGE_SELF && whose != RUSAGE_THREAD && whose != RUSAGE_CHILDREN)
		return -EINVAL;
	if (whose != RUSAGE_CHILDREN) {
		usage.user = clock_time(whose == RUSAGE_SELF ? clock_program_ns()
							     : clock_thread_ns(thread_current()),
					NS_PER_US);
		usage.resident_most_kib = (s64)(pages_resident_most(&program_space) / KIB(1));
	}
	return user_write(args->arg[1], &usage, sizeof(usage));
}

/* struct sysinfo */
struct user_sysinfo {
	s64 uptime_s;
	u64 loads[3], total, free, shared, buffers, swap_total, swap_free;
	u16 threads, gap[3];
	u64 high_total, high_free;
	u32 unit, end;
};

s64 call_sysinfo(const struct call_args *args)
{
	struct user_sysinfo info = {.unit = 1, .uptime_s = (s64)(clock_ns() / NS_PER_S)};
	struct mm_usage usage;

	mm_usage(&usage);
	info.total = usage.ram * PAGE_SIZE;
	info.free = (usage.free + usage.unopened + usage.per_cpu + usage.pool_free) * PAGE_SIZE;
	for (struct thread *thread = thread_next(NULL); thread; thread = thread_next(thread))
		info.threads++;
	return user_write(args->arg[0], &info, sizeof(info));
}
