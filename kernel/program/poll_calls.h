/*
 * Waiting for several files at once, for poll(), select() and epoll: look at all of them, and if
 * none has an event, sleep until some condition has changed, and look again. All threads that wait
 * so stand on one list, and each change of any condition wakes them.
 */
#pragma once

#include "kernel/lib/types.h"
#include "kernel/program/calls.h"
#include "kernel/program/user_copy.h"

struct file;

/* One look at all files. */
struct look {
	s64 found;    /* files with events, or a negative errno */
	bool console; /* no wake comes from one of the files */
};

struct question;
/* Look at the files of a call, and write the results if there are any or if `last`. */
typedef struct look look_fn(const struct question *question, bool last);

/* The events and the time that a call waits for. */
struct question {
	look_fn *look;
	user_t set[3]; /* poll: set[0] is the array; select: sets to read, to write, with errors */
	u64 count;     /* of files */
	u64 until_ns;  /* clock_ns(); 0: no limit */
	void *state;   /* epoll.c */
};

/* The end of so many milliseconds from now on; a negative number means no limit. */
u64 poll_until(s32 ms);

/*
 * Ask until there is an answer, the time has come or a signal waits (-EINTR), under the signal mask
 * of `size` bytes at `mask` (0 there: under the thread's own). Returns what the last look found;
 * -EINVAL for another size than 8, -EFAULT. Context: ordinary.
 */
s64 poll_for_masked(user_t mask, u64 size, const struct question *question);

/*
 * A condition that such a thread can wait for has changed. No lock held, and the change was made
 * under the condition's lock.
 */
void poll_wake(void);
