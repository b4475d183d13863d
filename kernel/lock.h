/*
 * Spin locks: first come, first served (a ticket queue), so that no CPU starves however many contend.
 *
 * Interrupt handlers take no locks of this kind: they neither allocate nor free, so locking does not mask
 * interrupts, and a CPU that spins keeps serving its mailbox. The exception, a drain of per-CPU lists, only tries a lock, or
 * asks locks_none() before it waits for one. No lock is held across a shootdown round or any wait. A CPU counts the locks it holds
 * or queues for, in every build (kernel/context.h).
 *
 * Every lock has a rank; debug builds assert that locks are taken in rising rank, which makes the documented lock order
 * the real one. lock_holds=on keeps the longest hold of each rank, in every build; off, which is the default, it costs a branch
 * that is never taken.
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
	LOCK_RANKS
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
	/* lock_holds=on; the holder's. */
	virt_t taken_at; /* in which function it was taken; 0: this hold is not measured */
	u64 since, work; /* when, and lock_work() of the CPU until then */
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

/*
 * lock_holds=on: the longest holds of the locks of a rank by any CPU since lock_holds_forget(), in time and in records handled
 * (lock_work()), each with an address in the function that took the lock, 0 if there was no hold. Time is what the CPU had for the
 * holder (clock_cpu_ns()). Any context. While other CPUs hold locks the figures may change as
 * they are read.
 */
struct lock_longest {
	u64 most;
	virt_t taken_at;
};

struct lock_holds {
	struct lock_longest ns, work;
};

struct lock_holds lock_holds_read(enum lock_rank rank);
void lock_holds_forget(void);
const char *lock_rank_name(enum lock_rank rank);
const char *lock_function(virt_t taken_at); /* its name, "-" for 0 */

/* Print them for people, one line for each rank of which a lock was held. */
void lock_holds_print(void);

/* lock.c's, and lock_work()'s. */
extern bool lock_holds_measured; /* atomic */
void lock_hold_begin(struct spinlock *lock, virt_t from);
void lock_hold_end(struct spinlock *lock);
void lock_work_count(u64 records);

static inline bool lock_holds_wanted(void)
{
	return atomic_load_relaxed(&lock_holds_measured);
}

/* `records` more are handled by this CPU, under the locks that it holds. */
static inline void lock_work(u64 records)
{
	if (unlikely(lock_holds_wanted()))
		lock_work_count(records);
}
