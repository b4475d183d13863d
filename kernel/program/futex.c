/* Futexes: see futex.h. Numbers and structures: futex(2), set_robust_list(2). */
#include "kernel/program/futex.h"

#include <arch/atomic.h>
#include <arch/barrier.h>

#include "kernel/core/lock.h"
#include "kernel/program/calls.h"
#include "kernel/program/clocks.h"
#include "kernel/program/signal.h"
#include "kernel/program/thread.h"

enum { QUEUES = 256 };
#define QUEUE_MOVING 0xffffffffu /* between two queues */

enum futex_op {
	FUTEX_WAIT = 0,
	FUTEX_WAKE = 1,
	FUTEX_REQUEUE = 3,
	FUTEX_CMP_REQUEUE = 4,
	FUTEX_WAKE_OP = 5,
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

static u32 queue_of(user_t at)
{
	return (u32)((at >> 2) * 0x9e3779b97f4a7c15ULL >> 56) % QUEUES;
}

/* ---- queues; the lock is held ---- */

static void push(u32 index, struct thread *thread)
{
	struct thread **link = &queues[index].first;

	while (*link)
		link = &(*link)->futex.next;
	thread->futex.next = NULL;
	atomic_store_release(&thread->futex.queue, index + 1);
	*link = thread;
}

static void unlink_at(struct thread **link)
{
	struct thread *thread = *link;

	*link = thread->futex.next;
	atomic_store_release(&thread->futex.queue, 0);
}

/* ---- waiting ---- */

static void join_queue(struct thread *self, user_t at, u32 bits)
{
	const u32 index = queue_of(at);

	self->futex.key = at;
	self->futex.bits = bits;
	spin_lock(&queues[index].lock);
	push(index, self);
	spin_unlock(&queues[index].lock);
}

/*
 * Leave the queue that the thread is in, which another thread may change meanwhile (requeue). True
 * if it was still in one; false if it was woken.
 */
static bool leave_queue(struct thread *self)
{
	for (;;) {
		const u32 queue = atomic_load_acquire(&self->futex.queue);
		struct thread **link;
		bool found = false;

		if (queue == 0)
			return false;
		if (queue == QUEUE_MOVING) {
			cpu_relax(); /* for as long as requeue() takes */
			continue;
		}
		spin_lock(&queues[queue - 1].lock);
		for (link = &queues[queue - 1].first; *link && *link != self;)
			link = &(*link)->futex.next;
		if (*link == self) {
			unlink_at(link);
			found = true;
		}
		spin_unlock(&queues[queue - 1].lock);
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

static bool matches(const struct thread *thread, user_t at, u32 bits)
{
	return thread->futex.key == at && (thread->futex.bits & bits);
}

u32 futex_wake(user_t at, u32 most, u32 bits)
{
	struct queue *queue = &queues[queue_of(at)];
	u32 woken = 0;

	spin_lock(&queue->lock);
	for (struct thread **link = &queue->first; *link && woken < most;) {
		struct thread *thread = *link;

		if (!matches(thread, at, bits)) {
			link = &thread->futex.next;
			continue;
		}
		unlink_at(link);
		thread_wake(thread);
		woken++;
	}
	spin_unlock(&queue->lock);
	return woken;
}

/* Move up to `most` waiters from one address to another; they sleep on. */
static u32 requeue(user_t from, user_t to, u32 most)
{
	struct queue *source = &queues[queue_of(from)], *target = &queues[queue_of(to)];
	struct thread *moving = NULL, **end = &moving;
	u32 moved = 0;

	spin_lock(&source->lock);
	for (struct thread **link = &source->first; *link && moved < most;) {
		struct thread *thread = *link;

		if (!matches(thread, from, ~0u)) {
			link = &thread->futex.next;
			continue;
		}
		*link = thread->futex.next;
		atomic_store_release(&thread->futex.queue, QUEUE_MOVING);
		thread->futex.key = to;
		thread->futex.next = NULL;
		*end = thread;
		end = &thread->futex.next;
		moved++;
	}
	spin_unlock(&source->lock);
	spin_lock(&target->lock);
	while (moving) {
		struct thread *thread = moving;

		moving = thread->futex.next;
		push(queue_of(to), thread);
	}
	spin_unlock(&target->lock);
	return moved;
}

static s64 wake_op(const struct call_args *args)
{
	const u32 code = (u32)args->arg[5];
	const u32 op = code >> 28 & 7, cmp = code >> 24 & 15;
	const s32 operand = (s32)(code << 8) >> 20, compare = (s32)(code << 20) >> 20;
	const u32 value = code >> 31 ? 1u << (operand & 31) : (u32)operand;
	u32 old, found, new;
	bool holds;
	s64 woken;

	if (user_load_u32(args->arg[4], &old) < 0)
		return -EFAULT;
	for (;;) {
		switch (op) {
		case 0:
			new = value;
			break;
		case 1:
			new = old + value;
			break;
		case 2:
			new = old | value;
			break;
		case 3:
			new = old & ~value;
			break;
		case 4:
			new = old ^ value;
			break;
		default:
			return -ENOSYS;
		}
		if (user_cas_u32(args->arg[4], old, new, &found) < 0)
			return -EFAULT;
		if (found == old)
			break;
		old = found;
	}
	switch (cmp) {
	case 0:
		holds = (s32)old == compare;
		break;
	case 1:
		holds = (s32)old != compare;
		break;
	case 2:
		holds = (s32)old < compare;
		break;
	case 3:
		holds = (s32)old <= compare;
		break;
	case 4:
		holds = (s32)old > compare;
		break;
	case 5:
		holds = (s32)old >= compare;
		break;
	default:
		return -ENOSYS;
	}
	woken = futex_wake(args->arg[0], (u32)args->arg[2], ~0u);
	if (holds)
		woken += futex_wake(args->arg[4], (u32)args->arg[3], ~0u);
	return woken;
}

/* ---- the call ---- */

/*
 * The time limit of a wait, on clock_ns(); 0: none. FUTEX_WAIT takes an interval,
 * FUTEX_WAIT_BITSET a time.
 */
static int limit(const struct call_args *args, unsigned op, u64 *until_ns)
{
	u64 ns, ahead;
	int err;

	*until_ns = 0;
	if (args->arg[3] == 0)
		return 0;
	err = clock_read_interval(args->arg[3], &ns);
	if (err < 0)
		return err;
	if (op == FUTEX_WAIT) {
		*until_ns = clock_until(ns);
		return 0;
	}
	ahead = args->arg[1] & FUTEX_REALTIME ? clock_date_ns() : 0;
	*until_ns = ns > ahead ? ns - ahead : 1;
	return 0;
}

static s64 cmp_requeue(const struct call_args *args, bool compare)
{
	u32 value;
	s64 woken;

	if (compare) {
		if (user_load_u32(args->arg[0], &value) < 0)
			return -EFAULT;
		if (value != (u32)args->arg[5])
			return -EAGAIN;
	}
	woken = futex_wake(args->arg[0], (u32)args->arg[2], ~0u);
	return woken + requeue(args->arg[0], args->arg[4], (u32)args->arg[3]);
}

static s64 call_futex(const struct call_args *args)
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
		if (err < 0)
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
	case FUTEX_CMP_REQUEUE:
		return cmp_requeue(args, op == FUTEX_CMP_REQUEUE);
	case FUTEX_WAKE_OP:
		return wake_op(args);
	default:
		return -ENOSYS;
	}
}
CALL(futex, 202);

/* ---- robust lists ---- */

struct robust_head {
	user_t first;
	s64 offset;
	user_t pending;
};

enum { ROBUST_MAX = 2048, ROBUST_HEAD_BYTES = 24 };

/* Mark a word that the thread holds, and wake one waiter. */
static void release_word(const struct thread *thread, user_t at)
{
	u32 value, found;

	if (user_load_u32(at, &value) < 0)
		return;
	for (;;) {
		if ((value & FUTEX_ID_MASK) != thread->id)
			return;
		if (user_cas_u32(at, value, (value & FUTEX_WAITERS) | FUTEX_OWNER_DIED, &found) < 0)
			return;
		if (found == value)
			break;
		value = found;
	}
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
