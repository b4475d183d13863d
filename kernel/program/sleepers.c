/*
 * Threads that wait: see sleepers.h.
 *
 * poll: a poller is counted, executes a fence, notes the count of changes, and looks at the
 * conditions. A CPU that changes a condition executes a fence and looks whether pollers are
 * counted. This is the store-buffering pattern of kernel/core/shootdown.c: one of the two sees the
 * other.
 */
#include "kernel/program/sleepers.h"

#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/clock.h>

#include "kernel/program/thread.h"

struct sleeper {
	struct sleeper *next;
	struct thread *thread;
	u32 woken;
};

static struct {
	struct spinlock lock;
	struct sleepers sleepers;
	u32 count;   /* changes while there were pollers */
	u32 pollers; /* threads in poll(); atomic */
} poll = {.lock = {.rank = LOCK_LEAF, .holder = CPU_NONE}};

static void remove(struct sleepers *sleepers, const struct sleeper *sleeper)
{
	struct sleeper **link = &sleepers->first;

	while (*link != sleeper)
		link = &(*link)->next;
	*link = sleeper->next;
}

int sleepers_wait(struct sleepers *sleepers, struct spinlock *lock, u64 until_ns) __must_hold(lock)
{
	struct sleeper self = {.next = sleepers->first, .thread = thread_current()};
	int err = 0;

	if (!self.thread || thread_is_wanted(self.thread))
		return -EINTR;
	sleepers->first = &self;
	spin_unlock(lock);
	thread_sleep_begin(self.thread);
	/* a wake from now on is remembered; an earlier one is seen here */
	if (!atomic_load_acquire(&self.woken))
		err = thread_sleep(self.thread, until_ns);
	spin_lock(lock);
	remove(sleepers, &self);
	return err;
}

void sleepers_wake(struct sleepers *sleepers)
{
	for (struct sleeper *sleeper = sleepers->first; sleeper; sleeper = sleeper->next) {
		atomic_store_release(&sleeper->woken, 1);
		thread_wake(sleeper->thread);
	}
}

int sleep_until(u64 until_ns)
{
	struct thread *self = thread_current();
	int err = !self || thread_is_wanted(self) ? -EINTR : 0;

	while (!err && clock_ns() < until_ns) {
		thread_sleep_begin(self);
		err = thread_sleep(self, until_ns);
	}
	return err == -ETIMEDOUT ? 0 : err;
}

void poll_wake(void)
{
	fence_full();
	if (atomic_load_relaxed(&poll.pollers) == 0)
		return;
	spin_lock(&poll.lock);
	poll.count++;
	sleepers_wake(&poll.sleepers);
	spin_unlock(&poll.lock);
}

void poll_begin(void)
{
	atomic_fetch_add(&poll.pollers, 1);
	fence_full();
}

void poll_end(void)
{
	atomic_fetch_sub(&poll.pollers, 1);
}

u32 poll_count(void)
{
	u32 count;

	spin_lock(&poll.lock);
	count = poll.count;
	spin_unlock(&poll.lock);
	return count;
}

int poll_wait(u32 count, u64 until_ns)
{
	int err = 0;

	spin_lock(&poll.lock);
	if (poll.count == count)
		err = sleepers_wait(&poll.sleepers, &poll.lock, until_ns);
	spin_unlock(&poll.lock);
	return err;
}
