/* Exceptions of a program that are no page faults: each becomes a signal. */
#pragma once

#include <arch/user.h>

/* user_ops.exception: raise the signal of regs->vector. Context: ordinary. */
void program_exception(struct trap_frame *regs);
