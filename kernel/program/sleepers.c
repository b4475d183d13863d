/* Threads that wait: see sleepers.h. */
#include "kernel/program/sleepers.h"

#include <arch/atomic.h>
#include <arch/clock.h>

#include "kernel/program/thread.h"

struct sleeper {
	struct sleeper *next;
	struct thread *thread;
	u32 woken;
};

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
	sleepers->first = &self; /* cppcheck-suppress autoVariables; until remove() */
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
