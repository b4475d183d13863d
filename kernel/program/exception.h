/* Exceptions of a program that are no page faults: each becomes a signal. */
#pragma once

#include <arch/user.h>

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
