/*
 * Threads that wait inside a call for something to change, for example for bytes in a pipe. The
 * owner of the condition has a list of sleepers and a lock that guards both.
 *
 *	spin_lock(&pipe->lock);
 *	while (!condition && !err)
 *		err = sleepers_wait(&pipe->sleepers, &pipe->lock, 0);
 *	(the lock is held here)
 */
#pragma once

#include "kernel/core/lock.h"
#include "kernel/lib/types.h"

struct sleeper;

struct sleepers {
	struct sleeper *first;
};

/*
 * Drop `lock`, wait until sleepers_wake() or the time `until_ns` (clock_ns(); 0: no limit), and
 * take the lock again. Returns 0, -EINTR or -ETIMEDOUT; -EINTR on a CPU without a thread. A wake
 * that comes before the wait begins is not lost. Caller holds only this lock.
 */
int sleepers_wait(struct sleepers *sleepers, struct spinlock *lock, u64 until_ns) __must_hold(lock);

/* Wake all. Caller holds the lock. */
void sleepers_wake(struct sleepers *sleepers);

/* Wait until the time `until_ns`. Returns 0, or -EINTR as sleepers_wait(). No lock held. */
int sleep_until(u64 until_ns);
