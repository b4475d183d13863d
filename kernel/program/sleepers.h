/*
 * Threads that wait inside a call for something to change, for example for bytes in a pipe. The
 * owner of the condition has a list of sleepers and a lock that guards both.
 *
 *	spin_lock(&pipe->lock);
 *	while (!condition && !err)
 *		err = sleepers_wait(&pipe->sleepers, &pipe->lock, 0);
 *	(the lock is held here)
 *
 * poll() waits for several conditions at once. All threads in poll() stand on one list, and each
 * change of any condition wakes them to look again.
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

/*
 * A condition that poll() can wait for has changed. No lock held, and the change was made under the
 * condition's lock.
 */
void poll_wake(void);

/*
 * For poll(): note the count, look at the conditions, and wait until the count has changed or the
 * time has come. poll_begin() and poll_end() enclose all of it. poll_wait() returns as
 * sleepers_wait().
 */
void poll_begin(void);
void poll_end(void);
u32 poll_count(void);
int poll_wait(u32 count, u64 until_ns);
