/* Ring 3, arch-internal part; the rest is <arch/user.h>. */
#pragma once

#include "kernel/lib/types.h"

/* Switch SYSCALL on, and every other way into ring 0 off. Every CPU, after cpu_features_init(). */
void user_init_cpu(void);

/* ---- user_run.S ---- */

struct trap_frame;

/*
 * Save the registers that C keeps, store the stack pointer below them to *stack and *rsp0, call
 * before(regs), and go to ring 3 with `regs`. Returns when user_unwind() is called with the value
 * of *stack. Interrupts are off at the call and when it returns. `rsp0` need not be aligned.
 */
void user_run(struct trap_frame *regs, u64 *stack, void *rsp0, void (*before)(struct trap_frame *));

/* Return from the user_run() that stored `stack`. Interrupts are off. */
__noreturn void user_unwind(u64 stack);
