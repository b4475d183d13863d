/*
 * Ticket spin locks: see lock.h.
 */
#include "kernel/core/lock.h"

#include <arch/cpu.h>

#include "kernel/core/context.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/wait.h"

#ifdef ASHLAR_DEBUG
enum { ORDER_IS_CHECKED = true };
#else
enum { ORDER_IS_CHECKED = false };
#endif

/*
 * Every lock waited for must rank above all locks held, so that the documented order is the real
 * one.
 */
static void lock_order_push(struct spinlock *lock, bool waited)
{
	struct percpu *cpu;

	if (!ORDER_IS_CHECKED)
		return;
	cpu = this_cpu();
	for (unsigned i = 0; i < cpu->locks_held && waited; i++) {
		const struct spinlock *held = cpu->lock_stack[i];

		ASSERT(held->rank < lock->rank,
		       "lock of rank %u taken while one of rank %u is held", lock->rank,
		       held->rank);
	}
	ASSERT(cpu->locks_held < LOCKS_HELD_MAX, "CPU %u holds %u locks", cpu->id, cpu->locks_held);
	cpu->lock_stack[cpu->locks_held++] = lock;
}

static void lock_order_pop(struct spinlock *lock)
{
	struct percpu *cpu;
	irq_flags_t flags;
	unsigned i = 0;

	if (!ORDER_IS_CHECKED)
		return;
	flags = irq_save(); /* a drain interrupt pushes and pops too */
	cpu = this_cpu();
	while (i < cpu->locks_held && cpu->lock_stack[i] != lock)
		i++;
	ASSERT(i < cpu->locks_held, "CPU %u releases a lock of rank %u that it does not hold",
	       cpu->id, lock->rank);
	for (cpu->locks_held--; i < cpu->locks_held; i++)
		cpu->lock_stack[i] = cpu->lock_stack[i + 1];
	irq_restore(flags);
}
/*
 * Waits outside of the queue. In a virtual machine a CPU that waits naps (kernel/core/wait.h). A
 * queue of CPUs that nap would pass the lock on at the rate of their naps, to CPUs that are not
 * running, while CPUs that run stand behind them. A CPU therefore draws its ticket when it has seen
 * the lock free, or after some naps at the latest. On hardware it queues at once.
 */
enum { LOOKS_BEFORE_QUEUE = 1050 }; /* naps begin after 1,000 */

static void wait_outside(const struct spinlock *lock)
{
	struct wait wait;

	if (cpu_deadline_scale() == 1)
		return;
	wait = wait_begin(WAIT_LOCK, "a spin lock");
	wait.ahead = 1; /* short naps */
	while (spin_held(lock) && wait.spins < LOOKS_BEFORE_QUEUE && !panic_is_ours())
		wait_spin(&wait, atomic_load_relaxed(&lock->holder));
}

static void spin_lock_slow(struct spinlock *lock, u16 ticket)
{
	struct wait wait = wait_begin(WAIT_LOCK, "a spin lock");

	while (atomic_load_acquire(&lock->owner) != ticket) {
		if (panic_is_ours())
			return; /* the panic must print; other CPUs wait until stopped */
		wait.ahead = (u16)(ticket - atomic_load_relaxed(&lock->owner));
		if (wait.ahead == 0)
			continue; /* this CPU's turn has come */
		wait_spin(&wait, atomic_load_relaxed(&lock->holder));
	}
}

void spin_lock(struct spinlock *lock) __acquires(lock)
{
	u16 ticket;

	/* Before the ticket is drawn: an interrupt in between must not wait behind it. */
	context_enter(CONTEXT_LOCK);
	if (unlikely(spin_held(lock)))
		wait_outside(lock);
	ticket = atomic_fetch_add(&lock->next, 1);
	if (atomic_load_acquire(&lock->owner) != ticket)
		spin_lock_slow(lock, ticket);
	atomic_store_relaxed(&lock->holder, this_cpu()->id);
	lock_order_push(lock, true);
	__counts_as(lock, 1);
}

/*
 * The whole pair of tickets is compared. A lock that was free when it was read may by now have the
 * same next ticket again, after the tickets have come round, and be held.
 */
bool spin_try_seen(struct spinlock *lock, u32 seen)
{
	struct spinlock taken = {.tickets = seen};

	if (taken.next != taken.owner)
		return false;
	taken.next++;
	context_enter(CONTEXT_LOCK);
	if (!atomic_cas(&lock->tickets, seen, taken.tickets)) {
		context_leave(CONTEXT_LOCK);
		return false;
	}
	/* Pairs with the last holder's release, which stores this half only. */
	(void)atomic_load_acquire(&lock->owner);
	atomic_store_relaxed(&lock->holder, this_cpu()->id);
	lock_order_push(lock, false); /* a lock that is only tried cannot close a cycle */
	return true;
}

bool spin_try(struct spinlock *lock)
{
	return spin_try_seen(lock, atomic_load_relaxed(&lock->tickets));
}

void spin_unlock(struct spinlock *lock) __releases(lock)
{
	lock_order_pop(lock);
	atomic_store_relaxed(&lock->holder, CPU_NONE);
	atomic_store_release(&lock->owner, (u16)(atomic_load_relaxed(&lock->owner) + 1));
	context_leave(CONTEXT_LOCK); /* last: the ticket must be given back first */
	__counts_as(lock, -1);
}

bool locks_none(void)
{
	return !context_in(CONTEXT_LOCKS);
}

bool spin_held(const struct spinlock *lock)
{
	const struct spinlock now = {.tickets = atomic_load_relaxed(&lock->tickets)};

	return now.owner != now.next;
}
