/*
 * Calls of the Linux x86-64 ABI. call_rows.h has a row for each.
 *
 *	s64 call_getpid(const struct call_args *args) { ... }
 *
 * A call returns its result or a negative errno. It runs on the CPU of the calling thread, in the
 * ordinary context with interrupts on. Pointers of the program are user_t, and only user_copy.h
 * follows them.
 */
#pragma once

#include <arch/user.h>

#include "kernel/lib/types.h"

struct file;

struct call_args {
	u64 arg[6];
	struct file *file; /* of a first argument that is a descriptor; held during the call */
	struct trap_frame *regs; /* for the few calls that change registers */
};

typedef s64 program_call_fn(const struct call_args *args);

/* As in call_rows.h. */
struct call {
	const char *name, *arguments;
	program_call_fn *run; /* NULL: the result is `answer` */
	s64 answer;
	const char *how; /* NULL: run() gets the arguments as they are */
};

#define CALL(number, name, ...) program_call_fn call_##name;
#define SAME(...)
#define ANSWER(...)
#include "kernel/program/call_rows.h"

enum { CALLS_MAX = 512 };

/* Before a program starts: nothing has been said about it. */
void calls_begin(void);

/*
 * Serve the call in `regs` (user_ops.call). A call that is not there gives -ENOSYS and one line in
 * the log for each number.
 */
void calls_serve(struct trap_frame *regs);

/* The row of a call that is there, or NULL. For tests. */
const struct call *call_of(u64 number);
