/*
 * Calls that wait for several files: poll, ppoll, select, pselect6; see poll_calls.h.
 *
 * The sets of a call stay in the program's memory and are read again each time that the thread
 * looks; only the results of the last look are written.
 *
 * A poller is counted, executes a fence, notes the count of changes, and looks at the conditions. A
 * CPU that changes a condition executes a fence and looks whether pollers are counted. This is the
 * store-buffering pattern of kernel/core/shootdown.c: one of the two sees the other.
 */
#include "kernel/program/poll_calls.h"

#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/clock.h>

#include "kernel/program/clocks.h"
#include "kernel/program/console_file.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "kernel/program/signal.h"
#include "kernel/program/sleepers.h"
#include "kernel/program/thread.h"

static struct {
	struct spinlock lock;
	struct sleepers sleepers;
	u32 count;   /* changes while there were pollers; atomic */
	u32 pollers; /* threads in poll_for(); atomic */
} poll = {.lock = {.rank = LOCK_LEAF, .holder = CPU_NONE}};

void poll_wake(void)
{
	fence_full();
	if (atomic_load_relaxed(&poll.pollers) == 0)
		return;
	spin_lock(&poll.lock);
	atomic_fetch_add(&poll.count, 1);
	sleepers_wake(&poll.sleepers);
	spin_unlock(&poll.lock);
}

static s64 poll_for(const struct question *question)
{
	struct look look;

	atomic_fetch_add(&poll.pollers, 1);
	fence_full();
	for (;;) {
		const u32 count = atomic_load_acquire(&poll.count);
		u64 until = question->until_ns;
		/* a signal comes before the end of the time, but not for epoll_wait() */
		const bool last = until && clock_ns() >= until &&
				  (question->state || !thread_is_wanted(thread_current()));
		int err = 0;

		look = question->look(question, last);
		if (look.found != 0 || last)
			break;
		if (look.console && (!until || until > clock_ns() + CONSOLE_LOOK_NS))
			until = clock_ns() + CONSOLE_LOOK_NS;
		spin_lock(&poll.lock);
		if (atomic_load_relaxed(&poll.count) == count)
			err = sleepers_wait(&poll.sleepers, &poll.lock, until);
		spin_unlock(&poll.lock);
		if (err == -EINTR) {
			look.found = -EINTR;
			break;
		}
	}
	atomic_fetch_sub(&poll.pollers, 1);
	return look.found;
}

s64 poll_for_masked(user_t mask, u64 size, const struct question *question)
{
	u64 during;
	int err;

	if (!mask)
		return poll_for(question);
	if (size != sizeof(during))
		return -EINVAL;
	err = user_read(&during, mask, sizeof(during));
	if (err)
		return err;
	signal_mask_during_call(thread_current(), during);
	return poll_for(question);
}

u64 poll_until(s32 ms)
{
	return ms < 0 ? 0 : clock_until((u64)ms * NS_PER_MS);
}

/* ---- poll ---- */

struct program_pollfd {
	s32 descriptor;
	u16 events, found;
};

static struct look look_at_array(const struct question *question, bool last)
{
	struct look look = {0};

	for (u64 i = 0; i < question->count; i++) {
		const user_t at = question->set[0] + i * sizeof(struct program_pollfd);
		struct program_pollfd one;
		struct file *file;
		int err = user_read(&one, at, sizeof(one));

		if (err)
			return (struct look){.found = err};
		one.found = 0;
		file = one.descriptor < 0 ? NULL : file_of(one.descriptor);
		if (file) {
			one.found = (u16)(file_look(file).ready &
					  (one.events | READY_ERROR | READY_HANGUP));
			look.console |= file->ops->terminal;
			file_put(file);
		} else if (one.descriptor >= 0) {
			one.found = READY_INVALID;
		}
		look.found += one.found != 0;
		err = user_write(at + offsetof(struct program_pollfd, found), &one.found,
				 sizeof(one.found));
		if (err)
			return (struct look){.found = err};
	}
	return look;
}

static s64 poll_array(const struct call_args *args, u64 until_ns, user_t mask, u64 size)
{
	const struct question question = {.look = look_at_array,
					  .set = {args->arg[0]},
					  .count = (u32)args->arg[1],
					  .until_ns = until_ns};

	if (question.count > DESCRIPTORS_MAX)
		return -EINVAL;
	return poll_for_masked(mask, size, &question);
}

s64 call_poll(const struct call_args *args)
{
	return poll_array(args, poll_until((s32)args->arg[2]), 0, 0);
}

s64 call_ppoll(const struct call_args *args)
{
	u64 until;
	const int err = clock_read_until(args->arg[2], 1, &until);

	return err ? err : poll_array(args, until, args->arg[3], args->arg[4]);
}

/* ---- select ---- */

enum { SETS = 3, SET_WORDS = DESCRIPTORS_MAX / 64 };

/* Events that put a file into each of the three results. */
static const unsigned events_of[SETS] = {
	READY_IN | READY_HANGUP | READY_ERROR,
	READY_OUT | READY_ERROR,
	0,
};

struct sets {
	u64 word[SETS][SET_WORDS];
};

/* Look at one file, if it is in a set. */
static int look_at_one(int descriptor, const struct sets *wanted, struct sets *found,
		       struct look *look)
{
	const u64 at = (u64)descriptor / 64, bit = 1ULL << descriptor % 64;
	struct file *file;
	unsigned ready;

	if (!((wanted->word[0][at] | wanted->word[1][at] | wanted->word[2][at]) & bit))
		return 0;
	file = file_of(descriptor);
	if (!file)
		return -EBADF;
	ready = file_look(file).ready;
	look->console |= file->ops->terminal;
	file_put(file);
	for (unsigned set = 0; set < SETS; set++) {
		if (wanted->word[set][at] & bit && ready & events_of[set]) {
			found->word[set][at] |= bit;
			look->found++;
		}
	}
	return 0;
}

/* Sets end with the word of the last file. */
static struct look look_at_sets(const struct question *question, bool last)
{
	const u64 bytes = DIV_ROUND_UP(question->count, 64) * sizeof(u64);
	struct sets wanted = {0}, found = {0};
	struct look look = {0};
	int err = 0;

	for (unsigned set = 0; set < SETS && !err; set++)
		if (question->set[set])
			err = user_read(wanted.word[set], question->set[set], bytes);
	for (u64 i = 0; i < question->count && !err; i++)
		err = look_at_one((int)i, &wanted, &found, &look);
	if (!err && (look.found > 0 || last))
		for (unsigned set = 0; set < SETS && !err; set++)
			if (question->set[set])
				err = user_write(question->set[set], found.word[set], bytes);
	return err ? (struct look){.found = err} : look;
}

/* Times are in nanoseconds or microseconds: `unit` is 1 or 1000. */
static s64 select_files(const struct call_args *args, u64 unit, user_t mask, u64 size)
{
	struct question question = {
		.look = look_at_sets,
		.set = {args->arg[1], args->arg[2], args->arg[3]},
		.count = MIN((u32)args->arg[0], (u32)DESCRIPTORS_MAX),
	};
	const int err = clock_read_until(args->arg[4], unit, &question.until_ns);

	if (err || (s32)args->arg[0] < 0)
		return err ? err : -EINVAL;
	return poll_for_masked(mask, size, &question);
}

s64 call_select(const struct call_args *args)
{
	return select_files(args, 1000, 0, 0);
}

/* The last argument points to the address and the size of the mask. */
s64 call_pselect6(const struct call_args *args)
{
	u64 mask[2] = {0};

	if (args->arg[5] && user_read(mask, args->arg[5], sizeof(mask)) < 0)
		return -EFAULT;
	return select_files(args, 1, mask[0], mask[1]);
}
