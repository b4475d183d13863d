/*
 * Threads of a program. A thread is a CPU: clone() starts it on an idle CPU, where it stays until
 * it exits. There is no scheduler, and when no CPU is idle clone() fails with EAGAIN.
 */
#pragma once

#include <arch/user.h>

#include "kernel/lib/types.h"
#include "kernel/program/user_copy.h"

/* A call reads at most two paths. */
enum { THREAD_TEXTS = 2 };

struct thread {
	u32 id; /* what gettid() returns; 0: no thread has this CPU */
	cpu_t cpu;
	u32 woken;    /* set by thread_wake(), any CPU */
	u32 halts;    /* about to halt, or halted, in thread_sleep(): a wake takes a message */
	bool polls;   /* its last sleep was short: it looks for a wake before it halts */
	u32 starting; /* 1: a thread is being started on the CPU; claimed by its starter */
	bool ending;  /* the thread leaves at the next attend() */
	bool leaving; /* its CPU will soon be idle */
	user_t clear_child_tid; /* set to 0 and woken when the thread ends; 0: none */
	user_t robust_list;
	/* clocks.c: CPU time of this CPU's threads, and of those before this one; atomic */
	u64 spent, spent_before, told;
	u64 until_ns;  /* clock_until() of the call that it makes; 0: it was not asked */
	char name[16]; /* PR_SET_NAME */
	/* futex.c: the queue it waits in; changed under that queue's lock */
	struct futex_wait {
		struct thread *next;
		u64 key;
		u32 bits;
		u32 queue; /* index + 1; 0: in none */
	} futex;
	/* signal*.c */
	/* signal n is bit n - 1; `pending` is written by any CPU, atomically */
	u64 blocked, pending;
	u64 mask_after; /* signal_mask_during_call(): the mask to be restored */
	bool has_mask_after;
	user_t alt_stack;
	u64 alt_stack_size;
	u32 alt_stack_flags;
	/* how it starts */
	struct trap_frame start;
	u64 fs_base;
	/*
	 * user_vectors_save(): registers that the thread starts with. From then on the thread's
	 * own, for the copy between its registers and a frame (signal_frame.c)
	 */
	void *vectors;
	void *texts;    /* path.c: THREAD_TEXTS pages for paths that a call reads */
	u32 texts_used; /* of them, from the first on */
};

/* The id of the program's first thread, which is that of the program, too. */
enum { THREAD_FIRST_ID = 1000 };
static inline u32 program_pid(void)
{
	return THREAD_FIRST_ID;
}

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
 * True if the record may have a next thread: the last one has ended. Signals that were sent to it
 * are then forgotten. Only the caller may start a thread there.
 */
bool thread_is_over(struct thread *record);

/*
 * The record of a CPU's threads, or NULL if none ever ran there. It stays allocated while the
 * program runs, so that other threads may look at it. Context: any.
 */
struct thread *thread_on(cpu_t cpu);

/* The record of a CPU's threads; one without a thread is made if there is none. NULL: no memory. */
struct thread *thread_record(cpu_t cpu);

/*
 * True if a wait inside a call must end with -EINTR, because the thread is to end or has a signal
 * that is not blocked. Waits check this each time they are woken.
 */
bool thread_is_wanted(const struct thread *thread);

/* True if the thread is to end. Long loops inside calls check this. */
bool thread_must_end(const struct thread *thread);

/*
 * Halt this CPU as idle until thread_wake() is called for the thread, thread_is_wanted(), or the
 * time `until_ns` (clock_ns(); 0: no limit) has come. Returns 0, -EINTR or -ETIMEDOUT. A wake that
 * comes between thread_sleep_begin() and the halt is not lost. A thread whose last sleep was short
 * first looks for the wake for as long. Context: ordinary.
 *
 *	thread_sleep_begin(self);      from now on wakes are remembered
 *	(queue self; look at the condition again)
 *	err = thread_sleep(self, until_ns);
 */
void thread_sleep_begin(struct thread *thread);
int thread_sleep(struct thread *thread, u64 until_ns);
void thread_wake(struct thread *thread); /* Context: handler. */

/*
 * Make the records, before the program starts: the calling CPU becomes its first thread, which has
 * the id THREAD_FIRST_ID. Returns it, or NULL without memory. threads_end() frees the records,
 * after all threads have ended.
 */
struct thread *threads_begin(void);
void threads_end(void);

/*
 * Start a thread on an idle CPU. `request` has its registers, TLS and words. Returns the id of the
 * thread, -EAGAIN if no CPU is idle, or -ENOMEM.
 */
struct thread_request {
	const struct trap_frame *regs;
	u64 fs_base;
	user_t clear_child_tid, child_tid, parent_tid; /* 0: none, as no memory is there */
};
s64 thread_start(const struct thread_request *request);

/* The calling thread ends: words are cleared, waiters woken, and its CPU leaves ring 3. */
__noreturn void thread_exit(void);

/* Every thread ends at its next attend(). Any thread may call this; it returns. */
void threads_end_all(void);

/* Wait for the end of all threads but the caller's. */
void threads_wait(void);

/* user_ops.attend(): the thread ends, or gets its signals. */
void thread_attend(struct trap_frame *regs);

/*
 * The next CPU, from `from` on, that the program hears of: program.cpus=. CPU_NONE if there is
 * none. Any context.
 */
cpu_t thread_cpu_told(cpu_t from);
