/*
 * The context in which a CPU runs, which decides what its code may do: one word per CPU, kept in
 * every build.
 *
 *   bits   count                                            entered and left by
 *   0..7   locks held, or queued for                        kernel/core/lock.c
 *   8..15  interrupt handlers, one inside the other         the interrupt entry
 *   16..23 functions that other CPUs called here            call_serve(), in an interrupt or in a
 *                                                           wait
 *   24..30 handlers of NMIs and machine checks              the entry of exceptions
 *   31     the program is quiet                             kernel/core/quiet.c
 *
 * The word is 0 in ordinary code. Only ordinary code may allocate, wait for other CPUs and start a
 * round. A handler holds up the code that it interrupted, and a lock holder holds up every CPU that
 * queues for the lock. Whether interrupts are on does not matter.
 *
 * The calls of mm.h and pool.h begin with context_assert(). It costs a comparison with memory if
 * the call is allowed; otherwise it ends the machine and names the call and the reason:
 *
 *	page_alloc() in an interrupt handler
 *	page_alloc() with a lock held (2)
 *
 * A handler leaves the word as it found it, so the counts need no atomic instruction.
 */
#pragma once

#include <arch/barrier.h>

#include "kernel/core/percpu.h"
#include "kernel/lib/types.h"

#define CONTEXT_LOCK      (1u << 0)
#define CONTEXT_LOCKS     (0xffu * CONTEXT_LOCK)
#define CONTEXT_INTERRUPT (1u << 8)
#define CONTEXT_CALL      (1u << 16)
#define CONTEXT_NMI       (1u << 24)
#define CONTEXT_NMIS      (0x7fu * CONTEXT_NMI)
#define CONTEXT_QUIET     (1u << 31)

/* Contexts that a call may require. */
enum context_kind {
	CONTEXT_ORDINARY, /* the word is 0 */
	CONTEXT_LOCKED,   /* the word is 0 but for locks held */
};

/*
 * Count one more, or one less. The compiler may move no access across, because this CPU's own
 * interrupts look at the word.
 */
static inline void context_enter(u32 one)
{
	this_cpu()->context += one;
	fence_compiler();
}

static inline void context_leave(u32 one)
{
	fence_compiler();
	this_cpu()->context -= one;
}

/* True if any of these counts is above 0. */
static inline bool context_in(u32 counts)
{
	return this_cpu_has_any(context, counts);
}

static inline u32 context_forbidden(enum context_kind kind)
{
	return kind == CONTEXT_LOCKED ? ~CONTEXT_LOCKS : ~0u;
}

/* True if the present context may make calls of that kind. */
static inline bool context_may(enum context_kind kind)
{
	return !context_in(context_forbidden(kind));
}

/*
 * The present context in words: "in an interrupt handler", "with a lock held (2)". If several
 * apply, the one that forbids most is named.
 */
enum { CONTEXT_REASON_MAX = 64 };
void context_reason(char *buf, size_t size);

/* End the machine, because `call` was made in a context that forbids it. */
__noreturn void context_refuse(const char *call);

/*
 * At the entry of a call: end the machine unless the call may be made in this context. A helper of
 * a call of mm.h uses context_assert_for(), to name that call instead of itself.
 */
#define context_assert(kind) context_assert_for(__func__, kind)
#define context_assert_for(call, kind)                                                             \
	do {                                                                                       \
		if (unlikely(!context_may(kind)))                                                  \
			context_refuse(call);                                                      \
	} while (0)
