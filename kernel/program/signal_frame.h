/*
 * The frame of a signal handler on the program's stack, in the form that signal_abi.h describes:
 * pushed when a handler begins, popped by rt_sigreturn.
 */
#pragma once

#include <arch/user.h>

#include "kernel/program/signal_abi.h"
#include "kernel/program/thread.h"

/* A handler that is to run, and what was interrupted for it. */
struct signal_call {
	const struct signal_action *action;
	const struct signal_info *info;
	u64 mask; /* the signal mask that rt_sigreturn restores */
	u64 cr2;  /* address of a page fault, else 0 */
};

/*
 * Push a frame and make `regs` the beginning of the handler. Goes to the alternate stack with
 * SA_ONSTACK. Takes no memory where the pages of the stack are there. Returns 0, or -EFAULT if the
 * frame does not fit where it should go; `regs` and the thread are then unchanged. Context:
 * ordinary, the calling thread.
 */
int signal_frame_push(struct trap_frame *regs, struct thread *thread,
		      const struct signal_call *call);

/*
 * Undo it: registers, vector registers and alternate stack become those of the frame below `rsp`.
 * *mask receives its signal mask. Returns 0, or -EFAULT if there is no such frame; some registers
 * may have changed. Context: ordinary, the calling thread.
 */
int signal_frame_pop(struct trap_frame *regs, struct thread *thread, u64 *mask);

/* The thread's alternate stack as sigaltstack() reports it, for a stack pointer of `sp`. */
struct signal_stack signal_alt_stack_of(const struct thread *thread, u64 sp);

/*
 * Set it. Returns 0, -EPERM if `sp` is on it, -EINVAL for impossible flags, or -ENOMEM if it is
 * smaller than MINSIGSTKSZ.
 */
int signal_alt_stack_set(struct thread *thread, u64 sp, const struct signal_stack *stack);
