/*
 * membarrier(): a fence on every CPU that runs a thread of the program, so that the other threads
 * need no fences of their own.
 *
 * The CPUs are interrupted, and their fence is that of the interrupt and of its handler's locked
 * instructions. A thread that begins meanwhile has been started by a thread that was interrupted,
 * or by the caller, which orders it as well.
 *
 * Source: Linux man-pages, membarrier(2).
 */
#include <arch/atomic.h>
#include <arch/barrier.h>

#include "kernel/core/call.h"
#include "kernel/core/percpu.h"
#include "kernel/program/calls.h"
#include "kernel/program/thread.h"

enum {
	CMD_QUERY = 0,
	CMD_GLOBAL = 1 << 0,
	CMD_PRIVATE_EXPEDITED = 1 << 3,
	CMD_REGISTER_PRIVATE_EXPEDITED = 1 << 4,
	CMD_PRIVATE_EXPEDITED_SYNC_CORE = 1 << 5,
	CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE = 1 << 6,
	CMD_ALL = CMD_GLOBAL | CMD_PRIVATE_EXPEDITED | CMD_REGISTER_PRIVATE_EXPEDITED |
		  CMD_PRIVATE_EXPEDITED_SYNC_CORE | CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE,
};

/* Machines with more CPUs interrupt all of them. */
enum { WORDS_MOST = 32 };

/* The return from the interrupt (IRETQ) also serialises the instructions that are fetched. */
static void fence(void *unused)
{
	fence_full();
}

static void fence_threads(void)
{
	u64 words[WORDS_MOST] = {0};
	struct cpumask mask = {.words = words};

	fence_full();
	if (cpumask_words > WORDS_MOST) {
		call_cpus(&cpus_online, fence, NULL);
		return;
	}
	for (struct thread *thread = thread_next(NULL); thread; thread = thread_next(thread)) {
		if (!atomic_load_relaxed(&thread->ending))
			cpumask_set(&mask, thread->cpu);
	}
	call_cpus(&mask, fence, NULL);
}

s64 call_membarrier(const struct call_args *args)
{
	if (args->arg[1])
		return -EINVAL; /* a flag, for one CPU only */
	switch (args->arg[0]) {
	case CMD_QUERY:
		return CMD_ALL;
	case CMD_REGISTER_PRIVATE_EXPEDITED:
	case CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE:
		return 0; /* nothing need be prepared */
	case CMD_GLOBAL:
	case CMD_PRIVATE_EXPEDITED:
	case CMD_PRIVATE_EXPEDITED_SYNC_CORE:
		fence_threads();
		return 0;
	}
	return -EINVAL;
}
