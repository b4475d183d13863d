/*
 * Spin locks: first come, first served (a ticket queue), so that no CPU starves however many
 * contend. In a virtual machine, a CPU that finds a lock held first waits outside of the queue for
 * a bounded time, because a queue of CPUs that nap is slow (lock.c).
 *
 * Interrupt handlers take no locks of this kind: they neither allocate nor free. Locking therefore
 * does not mask interrupts, and a CPU that spins keeps serving its mailbox. The exception is a
 * drain of per-CPU lists: it only tries a lock, or asks locks_none() before it waits for one. No
 * lock is held across a shootdown round or any wait. A CPU counts the locks it holds or queues for,
 * in every build (kernel/core/context.h).
 *
 * Every lock has a rank. Debug builds assert that locks are taken in rising rank, which makes the
 * documented lock order the real one.
 */
#pragma once

#include <arch/atomic.h>
#include <arch/barrier.h>

#include "kernel/lib/types.h"

/*
 * Lock order, outermost first. zone -> metadata memory -> tables is the order of mm/; the other
 * ranks nest with these only as shown here.
 */
enum lock_rank {
	LOCK_POOL,  /* huge page pool: its counts and list */
	LOCK_ZONE,  /* zone: free lists, block records on them, types and isolation bits */
	LOCK_META,  /* node: metadata bitmaps */
	LOCK_TABLE, /* section: vmemmap PMD install, split, clear */
	LOCK_LEAF,  /* takes no other lock while held: console, arenas of tests */
};

/*
 * Two u16 tickets serve up to 65,535 CPUs. Together they are one u32, so that spin_try() can check
 * both halves in one compare-and-swap.
 */
struct spinlock {
	union {
		struct {
			u16 next, owner; /* next ticket to draw; ticket being served */
		};
		u32 tickets;
	};
	u8 rank;
	cpu_t holder; /* for debugging, and for reports of late waits */
};

#define SPINLOCK_INIT(r) ((struct spinlock){.rank = (r), .holder = CPU_NONE})

void spin_lock(struct spinlock *lock) __acquires(lock);
#define spin_trylock(lock) __acquires_if(lock, spin_try(lock))
void spin_unlock(struct spinlock *lock) __releases(lock);
bool spin_try(struct spinlock *lock);
/* The second half of spin_try(), after `tickets` was read as `seen`; for tests. */
bool spin_try_seen(struct spinlock *lock, u32 seen);
bool spin_held(const struct spinlock *lock); /* by any CPU; for assertions */

/*
 * In an interrupt or a call: true if the code it interrupted on this CPU neither holds a lock nor
 * queues for one. Only then may the handler wait for a lock, because every CPU ahead of it in the
 * queue can go on.
 */
bool locks_none(void);
