/*
 * Spin locks: there is one holder at a time, and waiters are served in their order.
 */
#include "tests/kernel/test.h"

enum { TURNS = 200 };

static struct contest {
	struct spinlock lock;
	u64 plain; /* not atomic, protected by the lock alone */
	u32 inside, broken;
} contest;

static void increment(void *arg)
{
	struct contest *c = arg;

	for (unsigned i = 0; i < TURNS; i++) {
		spin_lock(&c->lock);
		c->plain++; /* before the atomic operations, which would order it */
		if (atomic_fetch_add(&c->inside, 1) != 0)
			atomic_fetch_add(&c->broken, 1);
		/* on a machine with few real CPUs, let other CPUs see this one inside */
		cpu_relax();
		atomic_fetch_sub(&c->inside, 1);
		spin_unlock(&c->lock);
	}
}

TEST(kernel_lock, one_holder_at_a_time)
{
	cpu_t cpus;

	contest = (struct contest){.lock = SPINLOCK_INIT(LOCK_LEAF)};
	cpus = cpus_run_together(increment, &contest);
	EXPECT_EQ(contest.broken, 0);
	EXPECT_EQ(contest.plain, (u64)cpus * TURNS);
	EXPECT(!spin_held(&contest.lock));
}

/*
 * Between the look and the swap of a try, 65,535 turns have passed, and the 65,536th turn holds the
 * lock.
 */
TEST(kernel_lock, a_lock_whose_tickets_came_round_is_not_taken_for_free)
{
	struct spinlock lock = SPINLOCK_INIT(LOCK_LEAF);
	u32 seen;

	lock.next = lock.owner = 5;
	seen = lock.tickets;
	lock.owner--;
	EXPECT(spin_held(&lock));
	EXPECT(!spin_try_seen(&lock, seen));
	EXPECT_EQ(lock.next, 5);
	lock.owner++;
	REQUIRE(spin_try_seen(&lock, seen));
	EXPECT(!spin_try_seen(&lock, seen));
	spin_unlock(&lock);
	EXPECT(!spin_held(&lock));
}

/* ---- first come, first served ---- */

enum { QUEUE_MAX = 8 };

static struct queue {
	struct spinlock lock;
	cpu_t served[QUEUE_MAX];
	u32 count;
} queue;

static void queue_up(void *arg)
{
	struct queue *q = arg;

	spin_lock(&q->lock);
	q->served[q->count++] = cpu_id();
	spin_unlock(&q->lock);
}

TEST(kernel_lock, first_come_first_served)
{
	cpu_t cpu, order[QUEUE_MAX];
	u32 queued = 0;

	queue = (struct queue){.lock = SPINLOCK_INIT(LOCK_LEAF)};
	if (cpumask_weight(&cpus_online) < 3)
		SKIP("needs three CPUs");
	spin_lock(&queue.lock);
	/* The highest CPU is first, so that the order differs from that of the numbers. */
	for (cpu = cpu_count; cpu-- > 0 && queued < QUEUE_MAX;) {
		if (cpu == cpu_id() || !cpu_online(cpu) || work_start(cpu, queue_up, &queue) < 0)
			continue;
		order[queued++] = cpu;
		CPUS_WAIT_FOR(atomic_load_acquire(&queue.lock.next) == queued + 1, cpu,
			      "a CPU to queue for a lock");
	}
	spin_unlock(&queue.lock);
	for (u32 i = 0; i < queued; i++)
		work_wait(order[i], 0);
	EXPECT_EQ(queue.count, queued);
	for (u32 i = 0; i < queued; i++)
		EXPECT_EQ(queue.served[i], order[i]);
}
