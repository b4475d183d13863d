/*
 * Threads of a program. A thread is a CPU: clone() starts it on an idle CPU, where it stays until
 * it exits. There is no scheduler, and when no CPU is idle clone() fails with EAGAIN.
 */
#pragma once

#include <arch/user.h>

#include "kernel/lib/types.h"
#include "kernel/program/user_copy.h"

struct thread {
	u32 id; /* what gettid() returns */
	cpu_t cpu;
	/*
	 * The page that this CPU brings or copies: its address, and its level in the low bits
	 * (areas.h). 0: none. Other CPUs read it.
	 */
	u64 pin;
	user_t clear_child_tid; /* set to 0 and woken when the thread ends; 0: none */
	user_t robust_list;
	/* signals.c */
	u64 blocked, pending; /* signal n is bit n - 1; pending is written by any CPU, atomically */
	user_t alt_stack;
	u64 alt_stack_size;
	u32 alt_stack_flags;
	bool ending; /* the thread leaves at the next attend() */
	/* clocks.c: clock_ns() when it began, and how long it was in thread_sleep() */
	u64 began_ns, slept_ns;
	char name[16]; /* PR_SET_NAME */
};

/* The thread that runs on this CPU, or NULL. */
struct thread *thread_current(void);

/*
 * The thread of that id, or NULL; and all threads, one after the other (NULL first, NULL at the
 * end). Records stay readable until the program ends, also those of threads that have ended.
 * Context: handler.
 */
struct thread *thread_by_id(u32 id);
struct thread *thread_next(const struct thread *after);

/*
 * True if a wait inside a call must end with -EINTR, because the thread is to end or has a signal
 * that is not blocked. Waits check this each time they are woken.
 */
bool thread_is_wanted(const struct thread *thread);

/*
 * Halt this CPU as idle until thread_wake() is called for the thread, thread_is_wanted(), or the
 * time `until_ns` (clock_ns(); 0: no limit) has come. Returns 0, -EINTR or -ETIMEDOUT. A wake that
 * comes between thread_sleep_begin() and the halt is not lost. Context: ordinary.
 *
 *	thread_sleep_begin(self);      from now on wakes are remembered
 *	(queue self; look at the condition again)
 *	err = thread_sleep(self, until_ns);
 */
void thread_sleep_begin(struct thread *thread);
int thread_sleep(struct thread *thread, u64 until_ns);
void thread_wake(struct thread *thread); /* Context: handler. */
