/*
 * Calls that wait for several files: poll, ppoll, select, pselect6; see poll_calls.h.
 *
 * The sets of a call stay in the program's memory and are read again each time that the thread
 * looks; only the results of the last look are written.
 */
#include "kernel/program/poll_calls.h"

#include <arch/clock.h>

#include "kernel/lib/string.h"
#include "kernel/program/calls.h"
#include "kernel/program/console_file.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "kernel/program/signal.h"
#include "kernel/program/sleepers.h"
#include "kernel/program/thread.h"

#define TIME_MAX (1ULL << 62) /* ns; a later time is as good as never */

unsigned poll_events(struct file *file)
{
	const unsigned all = READY_IN | READY_OUT;
	unsigned ready = file->ops->ready ? file->ops->ready(file) : all;

	if (ready & (READY_IN | READY_HANGUP))
		ready |= READY_PLAIN & 0x040;
	if (ready & READY_OUT)
		ready |= READY_PLAIN & 0x100;
	return ready;
}

s64 poll_for(const struct question *question, const struct poll_limit *limit)
{
	struct look look;

	poll_begin();
	for (;;) {
		const u32 count = poll_count();
		const bool last =
			limit->at_once || (limit->until_ns && clock_ns() >= limit->until_ns);
		u64 until = limit->until_ns;
		int err;

		look = question->look(question, last);
		if (look.found != 0 || last)
			break;
		if (look.console && (!until || until > clock_ns() + CONSOLE_LOOK_NS))
			until = clock_ns() + CONSOLE_LOOK_NS;
		err = poll_wait(count, until);
		if (err == -EINTR) {
			look.found = -EINTR;
			break;
		}
	}
	poll_end();
	return look.found;
}

s64 poll_for_masked(const struct call_args *args, user_t mask, u64 size,
		    const struct question *question, const struct poll_limit *limit)
{
	struct thread *self = thread_current();
	u64 during, old;
	s64 result;
	int err;

	if (!mask)
		return poll_for(question, limit);
	if (size != sizeof(during))
		return -EINVAL;
	err = user_read(&during, mask, sizeof(during));
	if (err)
		return err;
	old = signal_mask_begin(self, during);
	result = poll_for(question, limit);
	return signal_mask_end(args->regs, old, result);
}

/* ---- times ---- */

static struct poll_limit limit_of(u64 ns)
{
	return (struct poll_limit){.until_ns = clock_ns() + MIN(ns, TIME_MAX), .at_once = ns == 0};
}

struct poll_limit poll_limit_ms(s32 ms)
{
	return ms < 0 ? (struct poll_limit){0} : limit_of((u64)ms * NS_PER_MS);
}

int poll_limit_read(user_t from, u64 unit, struct poll_limit *limit)
{
	s64 time[2];
	int err;

	*limit = (struct poll_limit){0};
	if (!from)
		return 0;
	err = user_read(time, from, sizeof(time));
	if (err)
		return err;
	if (time[0] < 0 || time[1] < 0 || (u64)time[1] >= NS_PER_S / unit)
		return -EINVAL;
	*limit = limit_of((u64)time[0] > TIME_MAX / NS_PER_S
				  ? TIME_MAX
				  : (u64)time[0] * NS_PER_S + (u64)time[1] * unit);
	return 0;
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
			one.found = (u16)(poll_events(file) &
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

s64 call_poll(const struct call_args *args)
{
	const struct question question = {
		.look = look_at_array, .set = {args->arg[0]}, .count = (u32)args->arg[1]};
	const struct poll_limit limit = poll_limit_ms((s32)args->arg[2]);

	return question.count > DESCRIPTORS_MAX ? -EINVAL : poll_for(&question, &limit);
}

s64 call_ppoll(const struct call_args *args)
{
	const struct question question = {
		.look = look_at_array, .set = {args->arg[0]}, .count = (u32)args->arg[1]};
	struct poll_limit limit;
	const int err = poll_limit_read(args->arg[2], 1, &limit);

	if (err)
		return err;
	if (question.count > DESCRIPTORS_MAX)
		return -EINVAL;
	return poll_for_masked(args, args->arg[3], args->arg[4], &question, &limit);
}

/* ---- select ---- */

enum { SET_WORDS = DESCRIPTORS_MAX / 64 };

/* Events that put a file into each of the three results. */
static const unsigned events_of[] = {
	READY_IN | READY_HANGUP | READY_ERROR,
	READY_OUT | READY_ERROR,
	0,
};

/* One word of the three sets. */
struct set_word {
	u64 wanted[3], found[3];
};

static int look_at_word(struct set_word *word, u64 first, struct look *look)
{
	u64 left = word->wanted[0] | word->wanted[1] | word->wanted[2];

	while (left) {
		const unsigned bit = (unsigned)__builtin_ctzll(left);
		struct file *file = file_of((int)(first + bit));
		unsigned ready;

		if (!file)
			return -EBADF;
		ready = poll_events(file);
		look->console |= file->ops->terminal;
		file_put(file);
		for (unsigned set = 0; set < 3; set++) {
			if (word->wanted[set] >> bit & 1 && ready & events_of[set]) {
				word->found[set] |= 1ULL << bit;
				look->found++;
			}
		}
		left &= left - 1;
	}
	return 0;
}

/* The bytes of a set that belong to a word. The program's sets end with the last file's word. */
static int read_word(const struct question *question, u64 index, struct set_word *word)
{
	const u64 bits = question->count - index * 64;
	const u64 mask = bits < 64 ? (1ULL << bits) - 1 : ~0ULL;

	*word = (struct set_word){0};
	for (unsigned set = 0; set < 3; set++) {
		int err = 0;

		if (question->set[set])
			err = user_read(&word->wanted[set], question->set[set] + index * 8, 8);
		if (err)
			return err;
		word->wanted[set] &= mask;
	}
	return 0;
}

static struct look look_at_sets(const struct question *question, bool last)
{
	const u64 words = DIV_ROUND_UP(question->count, 64);
	u64 found[SET_WORDS][3];
	struct look look = {0};

	for (u64 i = 0; i < words; i++) {
		struct set_word word;
		int err = read_word(question, i, &word);

		if (!err)
			err = look_at_word(&word, i * 64, &look);
		if (err)
			return (struct look){.found = err};
		memcpy(found[i], word.found, sizeof(found[i]));
	}
	if (look.found == 0 && !last)
		return look;
	for (u64 i = 0; i < words * 3; i++) {
		const user_t set = question->set[i % 3];
		const int err = set ? user_write(set + i / 3 * 8, &found[i / 3][i % 3], 8) : 0;

		if (err)
			return (struct look){.found = err};
	}
	return look;
}

static struct question question_of(const struct call_args *args)
{
	return (struct question){
		.look = look_at_sets,
		.set = {args->arg[1], args->arg[2], args->arg[3]},
		.count = MIN((u32)args->arg[0], (u32)DESCRIPTORS_MAX),
	};
}

s64 call_select(const struct call_args *args)
{
	const struct question question = question_of(args);
	struct poll_limit limit;
	const int err = poll_limit_read(args->arg[4], 1000, &limit);

	if (err)
		return err;
	return (s32)args->arg[0] < 0 ? -EINVAL : poll_for(&question, &limit);
}

/* The last argument points to the address and the size of the mask. */
s64 call_pselect6(const struct call_args *args)
{
	const struct question question = question_of(args);
	struct poll_limit limit;
	u64 mask[2] = {0};
	int err = poll_limit_read(args->arg[4], 1, &limit);

	if (!err && args->arg[5])
		err = user_read(mask, args->arg[5], sizeof(mask));
	if (err)
		return err;
	if ((s32)args->arg[0] < 0)
		return -EINVAL;
	return poll_for_masked(args, mask[0], mask[1], &question, &limit);
}
