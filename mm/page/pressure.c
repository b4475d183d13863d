/*
 * Asking for memory: see pressure.h.
 *
 * A slot is changed under `lock`. Readers take no lock. They count themselves in `asking`, by a
 * locked instruction, and read the slots. pressure_unregister() takes the function out of its slot,
 * executes a fence and waits until nobody asks. One of the two sees the other. The slot may be used
 * again only after that, so a function is never called with the ctx of another.
 */
#include "mm/page/pressure.h"

#include <arch/atomic.h>
#include <arch/barrier.h>

#include "kernel/core/context.h"
#include "kernel/core/lock.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/wait.h"

enum { SLOTS = 8 };

static struct pressure_slot {
	pressure_fn *fn; /* atomic; NULL: nobody is asked */
	void *ctx;
	bool taken; /* under the lock */
} slots[SLOTS];
static struct spinlock lock = SPINLOCK_INIT(LOCK_LEAF);
static u32 asking; /* CPUs inside of pressure_ask() */

bool pressure_ask(unsigned *next, unsigned order)
{
	struct percpu *self = this_cpu();
	bool freed = false;

	if (self->relieving || *next >= SLOTS)
		return false;
	self->relieving = true;
	atomic_fetch_add(&asking, 1); /* also a full fence: pairs with pressure_unregister() */
	for (; *next < SLOTS && !freed; (*next)++) {
		pressure_fn *fn = atomic_load_acquire(&slots[*next].fn);

		freed = fn && fn(slots[*next].ctx, order);
	}
	atomic_fetch_sub(&asking, 1);
	self->relieving = false;
	return freed;
}

int pressure_register(pressure_fn *fn, void *ctx)
{
	int err = -ENOSPC;

	context_assert(CONTEXT_ORDINARY);
	spin_lock(&lock);
	for (unsigned i = 0; i < SLOTS && err; i++) {
		if (slots[i].taken)
			continue;
		slots[i].taken = true;
		slots[i].ctx = ctx;
		atomic_store_release(&slots[i].fn, fn);
		err = 0;
	}
	spin_unlock(&lock);
	return err;
}

static struct pressure_slot *take_out(pressure_fn *fn, const void *ctx)
{
	struct pressure_slot *found = NULL;

	spin_lock(&lock);
	for (unsigned i = 0; i < SLOTS && !found; i++) {
		if (atomic_load_relaxed(&slots[i].fn) != fn || slots[i].ctx != ctx)
			continue;
		found = &slots[i];
		atomic_store_relaxed(&found->fn, NULL);
	}
	spin_unlock(&lock);
	return found;
}

static void wait_for_the_asked(void)
{
	struct wait wait;

	if (atomic_load_acquire(&asking) == 0) /* before anything else that may order the two */
		return;
	wait = wait_begin(WAIT_WORK, "functions that free memory for a request");
	while (atomic_load_acquire(&asking) > 0)
		wait_spin(&wait, CPU_NONE);
}

void pressure_unregister(pressure_fn *fn, void *ctx)
{
	struct pressure_slot *slot;

	context_assert(CONTEXT_ORDINARY);
	ASSERT(!this_cpu()->relieving, "pressure_unregister() by a function that is being asked");
	slot = take_out(fn, ctx);
	if (!slot)
		return;
	fence_full();
	wait_for_the_asked();
	spin_lock(&lock);
	slot->taken = false;
	spin_unlock(&lock);
}
