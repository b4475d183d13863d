/*
 * Calls that wait for several files: poll, ppoll, select, pselect6. A signal mask that ppoll() or
 * pselect6() supplies is ignored.
 *
 * The sets of a call stay in the program's memory and are read again each time that the thread
 * looks; only the results of the last look are written.
 */
#include <arch/clock.h>

#include "kernel/lib/string.h"
#include "kernel/program/calls.h"
#include "kernel/program/console_file.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "kernel/program/sleepers.h"

#define NO_LIMIT 0
#define TIME_MAX (1ULL << 62) /* ns; a later time is as good as never */

/* One look at all files. */
struct look {
	s64 found;    /* files with events, or a negative errno */
	bool console; /* no wake comes from one of the files */
};

struct question;
/* Look at the files of a call, and write the results if there are any or if `last`. */
typedef struct look look_fn(const struct question *question, bool last);

/* What a call waits for. */
struct question {
	look_fn *look;
	user_t set[3]; /* poll: set[0] is the array; select: sets to read, to write, with errors */
	u64 count;     /* of files */
};

static unsigned ready_events(struct file *file)
{
	const unsigned all = READY_IN | READY_OUT;
	unsigned ready = file->ops->ready ? file->ops->ready(file) : all;

	if (ready & (READY_IN | READY_HANGUP))
		ready |= READY_PLAIN & 0x040;
	if (ready & READY_OUT)
		ready |= READY_PLAIN & 0x100;
	return ready;
}

static s64 wait_for(const struct question *question, u64 until_ns, bool at_once)
{
	struct look look;

	poll_begin();
	for (;;) {
		const u32 count = poll_count();
		const bool last = at_once || (until_ns && clock_ns() >= until_ns);
		u64 until = until_ns;
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

/* ---- times ---- */

/* The end of an interval that begins now; *at_once is set for an empty interval. */
static u64 end_of(u64 ns, bool *at_once)
{
	*at_once = ns == 0;
	return clock_ns() + MIN(ns, TIME_MAX);
}

/* The end of a struct timespec (`unit` 1) or timeval (1000) at `from`; 0 there: no limit. */
static int read_interval(user_t from, u64 unit, u64 *until_ns, bool *at_once)
{
	s64 time[2];
	int err;

	*until_ns = NO_LIMIT;
	*at_once = false;
	if (!from)
		return 0;
	err = user_read(time, from, sizeof(time));
	if (err)
		return err;
	if (time[0] < 0 || time[1] < 0 || (u64)time[1] >= NS_PER_S / unit)
		return -EINVAL;
	*until_ns = end_of((u64)time[0] > TIME_MAX / NS_PER_S
				   ? TIME_MAX
				   : (u64)time[0] * NS_PER_S + (u64)time[1] * unit,
			   at_once);
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

	(void)last;
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
			one.found = (u16)(ready_events(file) &
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

static s64 poll_array(user_t array, u64 count, u64 until_ns, bool at_once)
{
	const struct question question = {
		.look = look_at_array, .set = {array}, .count = (u32)count};

	if ((u32)count > DESCRIPTORS_MAX)
		return -EINVAL;
	return wait_for(&question, until_ns, at_once);
}

static s64 call_poll(const struct call_args *args)
{
	const s32 ms = (s32)args->arg[2];
	bool at_once = false;
	const u64 until_ns = ms < 0 ? NO_LIMIT : end_of((u64)ms * NS_PER_MS, &at_once);

	return poll_array(args->arg[0], args->arg[1], until_ns, at_once);
}
CALL(poll, 7);

static s64 call_ppoll(const struct call_args *args)
{
	bool at_once;
	u64 until_ns;
	const int err = read_interval(args->arg[2], 1, &until_ns, &at_once);

	return err ? err : poll_array(args->arg[0], args->arg[1], until_ns, at_once);
}
CALL(ppoll, 271);

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
		ready = ready_events(file);
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

static s64 select_sets(const struct call_args *args, u64 unit)
{
	const struct question question = {
		.look = look_at_sets,
		.set = {args->arg[1], args->arg[2], args->arg[3]},
		.count = MIN((u32)args->arg[0], (u32)DESCRIPTORS_MAX),
	};
	bool at_once;
	u64 until_ns;
	const int err = read_interval(args->arg[4], unit, &until_ns, &at_once);

	if (err)
		return err;
	if ((s32)args->arg[0] < 0)
		return -EINVAL;
	return wait_for(&question, until_ns, at_once);
}

static s64 call_select(const struct call_args *args)
{
	return select_sets(args, 1000);
}
CALL(select, 23);

static s64 call_pselect6(const struct call_args *args)
{
	return select_sets(args, 1);
}
CALL(pselect6, 270);
