/* The record that the CPU and the entry code (traps.S) make of a trap. */
#pragma once

#include <arch/user.h>

#include "kernel/lib/types.h"

enum trap_vector {
	TRAP_DEBUG = 1,
	TRAP_NMI = 2,
	TRAP_BREAKPOINT = 3,
	TRAP_DOUBLE_FAULT = 8,
	TRAP_PAGE_FAULT = 14,
	TRAP_MACHINE_CHECK = 18,
	TRAP_FIRST_INTERRUPT = 32,
};

/* error code of a page fault; PF_PRESENT: the access is mapped and not allowed */
enum { PF_PRESENT = 1 << 0, PF_WRITE = 1 << 1, PF_RESERVED = 1 << 3, PF_EXEC = 1 << 4 };

#define RFLAGS_TRAP       (1ULL << 8)
#define RFLAGS_INTERRUPTS (1ULL << 9)
#define RFLAGS_RESUME     (1ULL << 16)

/* Did the trap interrupt a program in ring 3? */
static inline bool trap_from_ring3(const struct trap_frame *frame)
{
	return frame->cs & 3;
}
