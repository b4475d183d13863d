/*
 * Random calls of a program, hosted: threads that make them, and the hostile arguments.
 *
 * A worker is a thread of the program, on a CPU of its own. "Ring 3" is a C function
 * (<arch/user.h>), so a call costs no emulation. Signals, calls that are made again and
 * rt_sigreturn() act as in ring 3: after each call the worker goes on where its registers point.
 *
 *	FUZZ_TEXTS     paths, times and signal actions; all threads read it
 *	FUZZ_COMMON    16 MiB that all threads map, unmap, read and write in no order
 *	FUZZ_PRIVATE   of each worker: its stack, a scratch that its own arguments point to,
 *	               a buffer that nothing points to, and a window that the model knows
 *	               (tests/kernel/program_window.h)
 */
#pragma once

#include <arch/user.h>

#include "kernel/program/thread.h"
#include "tests/kernel/program_window.h"

enum { FUZZ_WORKERS = 16, FUZZ_COMMON_PAGES = 4096, FUZZ_LOG = 32 };
enum { FUZZ_DESCRIPTOR = 900 }; /* of the first worker's own file */

#define FUZZ_HEAP          GIB(4)
#define FUZZ_TEXTS         GIB(32)
#define FUZZ_COMMON        GIB(64)
#define FUZZ_PRIVATE(slot) (TIB(1) * (1 + (u64)(slot)))
#define FUZZ_PRIVATE_END   FUZZ_PRIVATE(FUZZ_WORKERS)
#define FUZZ_STACK_BYTES   KIB(64)
#define FUZZ_SCRATCH       MIB(1)
#define FUZZ_SCRATCH_BYTES KIB(32)
#define FUZZ_BUFFER        MIB(2)
#define FUZZ_WINDOW        GIB(1)

struct fuzz_logged {
	u64 number, arg[6];
	s64 result;
};

struct fuzz_worker {
	u32 used; /* a thread has it; atomic */
	/* a frame led elsewhere, so what the last call returned is not known */
	bool astray;
	unsigned slot, depth, since_upkeep;
	struct trap_frame *regs;
	struct random_source random;
	u64 calls; /* made in this round; only the worker writes it */
	struct program_window window;
	struct fuzz_logged log[FUZZ_LOG]; /* the newest at calls % FUZZ_LOG */
};

extern struct fuzz_worker fuzz_workers[FUZZ_WORKERS];

/* Gather the numbers of all calls, and clear the workers. Before each round. */
void fuzz_calls_begin(u64 seed, bool print_all);

/* The program; host_user_program. The first thread watches, all others work. */
void fuzz_program(struct trap_frame *regs);

/* Registers with which the program begins. */
struct trap_frame fuzz_first_regs(void);

/* Calls of the round that is to be made, and its seed's name in messages. */
struct fuzz_round {
	u64 seed, calls;
	u32 fail_nth; /* each nth allocation fails once the round is under way; 0: none does */
	u32 failed;   /* a worker found a difference; the round ends */
	u64 deaths, stalls, threads, signals;
};
extern struct fuzz_round fuzz_round;

/* Make a call as this worker, and handle the signals that it returns with. */
s64 fuzz_call_with(struct fuzz_worker *w, u64 number, const u64 arg[6]);
#define fuzz_call(w, number, ...) fuzz_call_with(w, number, (const u64[6]){__VA_ARGS__})

static inline u64 fuzz_below(struct fuzz_worker *w, u64 below)
{
	return random_below(&w->random, below);
}

/* Say a difference, with the worker's last calls, and end the round. */
void fuzz_fail(struct fuzz_worker *w, const char *fmt, ...) __printf(2, 3);
