/* Futexes: see futex.h. Numbers and structures: futex(2), set_robust_list(2). */
#include "kernel/program/futex.h"

#include <arch/atomic.h>

#include "kernel/core/lock.h"
#include "kernel/core/wait.h"
#include "kernel/program/calls.h"
#include "kernel/program/clocks.h"
#include "kernel/program/signal.h"
#include "kernel/program/thread.h"

enum { QUEUES = 256 };

enum futex_op {
	FUTEX_WAIT = 0,
	FUTEX_WAKE = 1,
	FUTEX_REQUEUE = 3,
	FUTEX_WAIT_BITSET = 9,
	FUTEX_WAKE_BITSET = 10,
	FUTEX_PRIVATE = 128,
	FUTEX_REALTIME = 256,
};

#define FUTEX_WAITERS    0x80000000u
#define FUTEX_OWNER_DIED 0x40000000u
#define FUTEX_ID_MASK    0x3fffffffu

static struct queue {
	__cacheline_aligned struct spinlock lock;
	struct thread *first;
} queues[QUEUES] = {[0 ... QUEUES - 1] = {.lock = {.rank = LOCK_LEAF, .holder = CPU_NONE}}};

static struct queue *queue_of(user_t at)
{
	return &queues[((at >> 2) * 0x9e3779b97f4a7c15ULL >> 56) % QUEUES];
}

/* ---- queues; the lock is held ---- */

static struct thread **end_of(struct queue *queue)
{
	struct thread **link = &queue->first;

	while (*link)
		link = &(*link)->futex.next;
	return link;
}

static bool matches(const struct thread *thread, user_t at, u32 bits)
{
	return thread->futex.key == at && (thread->futex.bits & bits);
}

/* Wake up to `most` waiters, which are then in no queue. Returns how many. */
static u32 wake(struct queue *queue, user_t at, u32 most, u32 bits)
{
	u32 count = 0;

	for (struct thread **link = &queue->first; *link && count < most;) {
		struct thread *thread = *link;

		if (!matches(thread, at, bits)) {
			link = &thread->futex.next;
			continue;
		}
		*link = thread->futex.next;
		atomic_store_release(&thread->futex.queue, 0);
		thread_wake(thread);
		count++;
	}
	return count;
}

/* ---- waiting ---- */

static void join_queue(struct thread *self, user_t at, u32 bits)
{
	struct queue *queue = queue_of(at);

	self->futex.key = at;
	self->futex.bits = bits;
	self->futex.next = NULL;
	spin_lock(&queue->lock);
	*end_of(queue) = self;
	atomic_store_release(&self->futex.queue, (u32)(queue - queues) + 1);
	spin_unlock(&queue->lock);
}

/*
 * Leave the queue that the thread is in, which another thread may change meanwhile (requeue). True
 * if it was still in one; false if it was woken.
 */
static bool leave_queue(struct thread *self)
{
	for (;;) {
		const u32 index = atomic_load_acquire(&self->futex.queue);
		struct queue *queue = &queues[index ? index - 1 : 0];
		struct thread **link = &queue->first;
		bool found;

		if (index == 0)
			return false;
		spin_lock(&queue->lock);
		while (*link && *link != self)
			link = &(*link)->futex.next;
		found = *link;
		if (found) {
			*link = self->futex.next;
			atomic_store_release(&self->futex.queue, 0);
		}
		spin_unlock(&queue->lock);
		if (found)
			return true;
	}
}

static s64 wait(user_t at, u32 expected, u64 until_ns, u32 bits)
{
	struct thread *self = thread_current();
	u32 value;
	int err;

	if (bits == 0)
		return -EINVAL;
	thread_sleep_begin(self);
	join_queue(self, at, bits);
	err = user_load_u32(at, &value);
	if (err == 0 && value != expected)
		err = -EAGAIN;
	if (err < 0)
		return leave_queue(self) ? err : 0;
	while (err == 0 && atomic_load_acquire(&self->futex.queue) != 0) {
		err = thread_sleep(self, until_ns);
		if (err == 0) /* perhaps it was woken for another reason */
			thread_sleep_begin(self);
	}
	/* woken and at the same time late or interrupted: it counts as woken */
	if (!leave_queue(self))
		return 0;
	return err == -EINTR && until_ns == 0 ? -ERESTARTSYS : err;
}

/* ---- waking ---- */

u32 futex_wake(user_t at, u32 most, u32 bits)
{
	struct queue *queue = queue_of(at);
	u32 count;

	spin_lock(&queue->lock);
	count = wake(queue, at, most, bits);
	spin_unlock(&queue->lock);
	return count;
}

/* ---- moving ---- */

/*
 * Both locks. Queues have no order among ranks: the lower one first, and the other only tried. For
 * sparse, the two are one lock.
 */
static void lock_both(struct queue *a, struct queue *b) __acquires(&a->lock)
{
	struct queue *low = a < b ? a : b, *high = a < b ? b : a;
	struct wait wait = wait_begin(WAIT_TOUCH, "two queues of futexes");

	for (;;) {
		spin_lock(&low->lock);
		if (low == high || spin_try(&high->lock))
			return;
		spin_unlock(&low->lock);
		wait_spin(&wait, CPU_NONE);
	}
}

static void unlock_both(struct queue *a, struct queue *b) __releases(&a->lock)
{
	if (a != b) {
		spin_unlock(&b->lock);
		__counts_as(&b->lock, 1);
	}
	spin_unlock(&a->lock);
}

/*
 * Wake up to `wakes` waiters of one address, and move up to `moves` to another, where they sleep
 * on. Both locks are held, so that a wake of either address comes before all of it or after.
 * Returns the number of both.
 */
static s64 requeue(user_t from, user_t to, u32 wakes, u32 moves)
{
	struct queue *source = queue_of(from), *target = queue_of(to);
	struct thread *chain = NULL, **end = &chain;
	u32 woken, moved = 0;

	lock_both(source, target);
	woken = wake(source, from, wakes, ~0u);
	for (struct thread **link = &source->first; *link && moved < moves;) {
		struct thread *thread = *link;

		if (!matches(thread, from, ~0u)) {
			link = &thread->futex.next;
			continue;
		}
		*link = thread->futex.next;
		thread->futex.key = to;
		atomic_store_release(&thread->futex.queue, (u32)(target - queues) + 1);
		*end = thread;
		end = &thread->futex.next;
		moved++;
	}
	*end = NULL;
	*end_of(target) = chain;
	unlock_both(source, target);
	return woken + moved;
}

/* ---- the call ---- */

/*
 * The time limit of a wait, on clock_ns(); 0: none. FUTEX_WAIT takes an interval,
 * FUTEX_WAIT_BITSET a time.
 */
static int limit(const struct call_args *args, unsigned op, u64 *until_ns)
{
	const u64 ahead = args->arg[1] & FUTEX_REALTIME ? clock_date_ns() : 0;
	u64 ns;
	int err;

	if (op == FUTEX_WAIT || args->arg[3] == 0)
		return clock_read_until(args->arg[3], 1, until_ns);
	err = clock_read(args->arg[3], 1, &ns);
	if (err == 0)
		*until_ns = MAX(saturating_sub(ns, ahead), 1ULL);
	return err;
}

s64 call_futex(const struct call_args *args)
{
	const unsigned op = (unsigned)args->arg[1] & ~(FUTEX_PRIVATE | FUTEX_REALTIME);
	const user_t at = args->arg[0];
	u64 until_ns;
	int err;

	if (!IS_ALIGNED(at, sizeof(u32)))
		return -EINVAL;
	switch (op) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
		err = limit(args, op, &until_ns);
		if (err)
			return err;
		return wait(at, (u32)args->arg[2], until_ns,
			    op == FUTEX_WAIT ? ~0u : (u32)args->arg[5]);
	case FUTEX_WAKE:
		return futex_wake(at, (u32)args->arg[2], ~0u);
	case FUTEX_WAKE_BITSET:
		if ((u32)args->arg[5] == 0)
			return -EINVAL;
		return futex_wake(at, (u32)args->arg[2], (u32)args->arg[5]);
	case FUTEX_REQUEUE:
		return requeue(at, args->arg[4], (u32)args->arg[2], (u32)args->arg[3]);
	default:
		return -ENOSYS;
	}
}

/* ---- robust lists ---- */

/* struct robust_list_head */
struct robust_head {
	user_t first;
	s64 offset;
	user_t pending;
};

enum { ROBUST_MAX = 2048 };

s64 call_set_robust_list(const struct call_args *args)
{
	if (args->arg[1] != sizeof(struct robust_head))
		return -EINVAL;
	thread_current()->robust_list = args->arg[0];
	return 0;
}

/* Mark a word that the thread holds, and wake one waiter. */
static void release_word(const struct thread *thread, user_t at)
{
	u32 value, found;

	if (user_load_u32(at, &found) < 0)
		return;
	do {
		value = found;
		if ((value & FUTEX_ID_MASK) != thread->id ||
		    user_cas_u32(at, value, (value & FUTEX_WAITERS) | FUTEX_OWNER_DIED, &found) < 0)
			return;
	} while (found != value);
	if (value & FUTEX_WAITERS)
		futex_wake(at, 1, ~0u);
}

void futex_release_robust(struct thread *thread)
{
	struct robust_head head;
	user_t entry;

	if (!thread->robust_list || user_read(&head, thread->robust_list, sizeof(head)) < 0)
		return;
	entry = head.first;
	for (unsigned i = 0; i < ROBUST_MAX && (entry & ~1ULL) != thread->robust_list; i++) {
		user_t next;

		if (user_read(&next, entry & ~1ULL, sizeof(next)) < 0)
			break;
		if ((entry & ~1ULL) != (head.pending & ~1ULL))
			release_word(thread, (entry & ~1ULL) + (u64)head.offset);
		entry = next;
	}
	if (head.pending)
		release_word(thread, (head.pending & ~1ULL) + (u64)head.offset);
}
