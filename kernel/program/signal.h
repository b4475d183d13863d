/*
 * Signals: sending them, and running a program's handlers.
 *
 *   signal_send()         makes a signal pending and has the thread's CPU attend to it
 *   signal_deliver()      before the return to ring 3: takes what is pending and not blocked, and
 *                         pushes a frame for each handler (signal_frame.h)
 *   signal_raise_fault()  a signal of the instruction that has just faulted
 *
 * A signal for the whole program goes to one thread that does not block it. If that thread blocks
 * it, or ends, before it is delivered, another thread is asked (signal_mask_set(),
 * signal_thread_ended()).
 *
 * Interrupted calls: a call that a signal interrupts returns -EINTR, or -ERESTARTSYS if it is to be
 * made again after a handler with SA_RESTART. If no handler runs, for example because the signal
 * is ignored or another thread took it, calls_serve() goes on with the call, and until the same
 * time (clock_until()), so no program sees either number then. trap_frame.error holds the number
 * of the call while trap_frame.vector is USER_VECTOR_CALL.
 */
#pragma once

#include <arch/user.h>

#include "kernel/program/signal_abi.h"
#include "kernel/program/thread.h"

enum { ERESTARTSYS = 512 };

/* In trap_frame.error: no call is to be restarted. */
#define SIGNAL_NO_CALL (~0ULL)

/* Before a program starts: default actions, nothing pending. */
void signals_begin(void);

/*
 * Send a signal to a thread, or with NULL to the program. `info` has its number. Returns 0, or
 * -EAGAIN (signal_pending_add()), or -EINVAL for a number that is not 1 to 64. Context: handler.
 */
int signal_send(struct thread *thread, int signal, const struct signal_info *info);

/*
 * signal_send() to the thread of that id; -ESRCH if there is none, or it has just ended. Signal 0
 * only looks whether the thread is there.
 */
int signal_send_to(u32 id, int signal, const struct signal_info *info);

/*
 * The calling thread has faulted. Its handler runs now. If the signal is blocked, ignored or has no
 * handler, or the frame does not fit, the program dies (program_death.h). `addr` is si_addr, and 0
 * for SI_KERNEL. Context: ordinary.
 */
void signal_raise_fault(struct trap_frame *regs, int signal, int code, u64 addr);

/* Exceptions of a program that are no page faults: each becomes a signal. */
enum vector {
	VECTOR_DIVIDE = 0,
	VECTOR_DEBUG = 1,
	VECTOR_BREAKPOINT = 3,
	VECTOR_OPCODE = 6,
	VECTOR_SEGMENT = 11,
	VECTOR_STACK = 12,
	VECTOR_PROTECTION = 13,
	VECTOR_PAGE_FAULT = 14,
	VECTOR_X87 = 16,
	VECTOR_ALIGNMENT = 17,
	VECTOR_SIMD = 19,
};

/* user_ops.exception: raise the signal of regs->vector. Context: ordinary. */
void program_exception(struct trap_frame *regs);

/*
 * Deliver what is pending and not blocked, if anything. To be called in user_ops.attend(). Context:
 * ordinary.
 */
void signal_deliver(struct trap_frame *regs);

/* Does a signal wait that the thread does not block? Context: handler. */
bool signal_is_deliverable(const struct thread *thread);

/* Change the mask of the calling thread. Signals are delivered at its next return to ring 3. */
void signal_mask_set(struct thread *thread, u64 mask);

/*
 * For calls that have a mask while they wait (rt_sigsuspend, ppoll, pselect6): it is in force until
 * signal_call_goes_on(), which restores the old one, or leaves that to the handlers' return.
 */
void signal_mask_during_call(struct thread *thread, u64 mask);

/*
 * A call has returned regs->rax. If it was interrupted, deliver what is pending and not blocked by
 * its mask. True if no handler runs then: the call is to be served again. False also if the thread
 * is to end, or this CPU has no thread.
 */
bool signal_call_goes_on(struct trap_frame *regs);

/* A thread is no longer there to receive signals. Context: handler. */
void signal_thread_ended(struct thread *thread);
