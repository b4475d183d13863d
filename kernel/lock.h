/*
 * Spin locks: first come, first served (a ticket queue), so that no CPU starves however many contend.
 *
 * Interrupt handlers take no locks of this kind: they neither allocate nor free, so locking does not mask
 * interrupts, and a CPU that spins keeps serving its mailbox. The exception, a drain of per-CPU lists, only tries a lock, or
 * asks locks_none() before it waits for one. No lock is held across a shootdown round or any wait. A CPU counts the locks it holds
 * or queues for, in every build (kernel/context.h).
 *
 * Every lock has a rank; debug builds assert that locks are taken in rising rank, which makes the documented lock order
 * the real one, and keep the longest time any was held (lock_held_max_ns).
 */
#pragma once

#include <arch/atomic.h>
#include <arch/barrier.h>

#include "kernel/types.h"

/* Lock order, outermost first. zone -> META -> tables is the order of mm/; the rest never nest with them unless shown. */
enum lock_rank {
	LOCK_POOL,   /* huge page pool: its counts and list */
	LOCK_ZONE,   /* zone: free lists, block records on them, types and isolation bits */
	LOCK_META,   /* node: META bitmaps */
	LOCK_TABLE,  /* section: vmemmap PMD install, split, clear */
	LOCK_LEAF,   /* takes no other lock while held: console, arenas of tests */
};

/* Two u16 tickets serve up to 65,535 CPUs, and are one u32 to spin_try(): both halves are looked at in one compare-and-swap. */
struct spinlock {
	union {
		struct {
			u16 next, owner; /* tickets: next to draw, now served */
		};
		u32 tickets;
	};
	u8 rank;
	cpu_t holder; /* debug */
	u64 since;    /* debug: when it was taken */
};

#define SPINLOCK_INIT(r) ((struct spinlock){.rank = (r), .holder = CPU_NONE})

void spin_lock(struct spinlock *lock) __acquires(lock);
#define spin_trylock(lock) __acquires_if(lock, spin_try(lock))
void spin_unlock(struct spinlock *lock) __releases(lock);
bool spin_try(struct spinlock *lock);
bool spin_try_seen(struct spinlock *lock, u32 seen); /* the second half of spin_try(), `tickets` having been `seen`; tests */
bool spin_held(const struct spinlock *lock); /* by anyone; for assertions */

/*
 * In an interrupt or call: what it interrupted on this CPU neither holds a lock nor queues for one. Then, and only then, may it
 * wait for a lock: whoever is in front of it can go on.
 */
bool locks_none(void);

extern u64 lock_held_max_ns; /* debug builds; else 0 */
