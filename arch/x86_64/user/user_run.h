/* Entering ring 3 and coming back, in assembly. */
#pragma once

#include "kernel/lib/types.h"

struct trap_frame;

/*
 * Save the registers that C keeps, store the stack pointer below them to *stack and *rsp0, call
 * before(regs), and go to ring 3 with `regs`. Returns when user_unwind() is called with the value
 * of *stack. Interrupts are off at the call and when it returns. `rsp0` need not be aligned.
 */
void user_run(struct trap_frame *regs, u64 *stack, void *rsp0, void (*before)(struct trap_frame *));

/* Return from the user_run() that stored `stack`. Interrupts are off. */
__noreturn void user_unwind(u64 stack);
