/*
 * Futexes: threads that wait for a word of the program's memory. A waiting thread's CPU halts as
 * idle, so rounds skip it, and it flushes when it is woken.
 *
 * All waiters of an address are in one of 256 queues, each with its lock. A thread queues itself
 * first and looks at the word then, because the word may need a page, which no lock holder can
 * wait for. A wake that comes in between finds the thread in the queue.
 *
 * The address alone is the key: the program has one address space, and words of one file that is
 * mapped twice count as two.
 */
#pragma once

#include "kernel/lib/types.h"
#include "kernel/program/user_copy.h"

struct thread;

/*
 * Wake up to `most` threads that wait at `at` with a bit of `bits`. Returns how many. Context:
 * ordinary.
 */
u32 futex_wake(user_t at, u32 most, u32 bits);

/* The calling thread ends: words of its robust list that it holds are marked, and waiters woken. */
void futex_release_robust(struct thread *thread);
