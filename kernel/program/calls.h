/*
 * Calls of the Linux x86-64 ABI, one function each. Each call is declared beside its code, and the
 * linker gathers them.
 *
 *	static s64 call_getpid(const struct call_args *args) { ... }
 *	CALL(getpid, 39);
 *
 * A call returns its result or a negative errno. It runs on the CPU of the calling thread, in the
 * ordinary context with interrupts on. Pointers of the program are user_t, and only user_copy.h
 * follows them.
 */
#pragma once

#include <arch/user.h>

#include "kernel/lib/types.h"

struct call_args {
	u64 arg[6];
	struct trap_frame *regs; /* for the few calls that change registers */
};

typedef s64 program_call_fn(const struct call_args *args);

struct call {
	const char *name;
	program_call_fn *run;
	unsigned number;
};

TABLE_DECLARE(const struct call, call_table);

#define CALL(ident, nr)                                                                            \
	static const struct call call_row_##ident TABLE_ENTRY(call_table) = {                      \
		.name = #ident, .run = call_##ident, .number = (nr)}

enum { CALLS_MAX = 512 };

/* Build the array of calls by number. Once, before a program starts. */
void calls_init(void);

/*
 * Serve the call in `regs` (user_ops.call). An unknown number gives -ENOSYS and one line in the log
 * for each number.
 */
void calls_serve(struct trap_frame *regs);

/* The row of a number, or NULL. For the table in calls.txt and for tests. */
const struct call *call_of(unsigned number);
