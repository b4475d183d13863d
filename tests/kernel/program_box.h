/*
 * A program for tests of calls: no code, but a thread on this CPU and some memory.
 *
 *	FIXTURE(program_signal, program_box_begin, program_box_end);
 *
 *	TEST(program_signal, ...)
 *	{
 *		program_call("rt_sigaction", SIGUSR1, PROGRAM_BOX_MEMORY, 0, 8);
 *	}
 */
#pragma once

#include "kernel/program/calls.h"
#include "kernel/program/program.h"
#include "kernel/program/program_space.h"
#include "kernel/program/signal.h"
#include "mm/vm/mapping.h"
#include "mm/vm/touch.h"
#include "tests/kernel/fixture.h"
#include "tests/kernel/test.h"

/* Readable and writable; the pages before and after it are not there. */
#define PROGRAM_BOX_MEMORY 0x100000ULL
#define PROGRAM_BOX_BYTES  KIB(64)

/*
 * Begin: this CPU has a thread with id program_pid(), nothing is blocked or pending, no handler is
 * set, and the memory is zero. Returns false for lack of memory.
 */
bool program_box_begin(void);
void program_box_end(void);

/* End the program and begin another one. */
bool program_box_again(void);

/* A record of one more thread of the program, on CPU 1, where nothing runs. Ends with the box. */
struct thread *program_box_second(void);

/* The heap begins here. */
void program_box_heap(u64 start);

/* The signal that program_die() was last called for, or 0. */
int program_box_died(void);

/*
 * Make a call by its name as this CPU's thread: the row's function with these registers, whose rax
 * receives the result. Without `regs`, registers that are zero but for rsp, in the middle of the
 * memory.
 */
s64 program_call_with(struct trap_frame *regs, const char *name, const u64 arg[6]);
#define program_call(name, ...) program_call_with(NULL, name, (const u64[6]){__VA_ARGS__})

/* A call that the thread of another CPU makes. */
struct program_call {
	const char *call;
	u64 arg[6];
	cpu_t cpu;
	s64 result;
	u32 begun, done;
};

/* Start it on a CPU that has no work, and give it time to do what it must not do. */
void program_call_start(struct program_call *c);

/* Parts of the memory: what calls read, what they write, and an address where nothing is. */
#define ARGUMENTS PROGRAM_BOX_MEMORY
#define RESULTS   (PROGRAM_BOX_MEMORY + KIB(1))
#define NOWHERE   (PROGRAM_BOX_MEMORY + PROGRAM_BOX_BYTES + PAGE_SIZE)
