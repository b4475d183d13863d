/* The record that the CPU and the entry code (traps.S) make of a trap. */
#pragma once

#include "kernel/lib/types.h"

enum trap_vector {
	TRAP_DEBUG = 1,
	TRAP_NMI = 2,
	TRAP_BREAKPOINT = 3,
	TRAP_DOUBLE_FAULT = 8,
	TRAP_STACK = 12,
	TRAP_GP = 13,
	TRAP_PAGE_FAULT = 14,
	TRAP_MACHINE_CHECK = 18,
	TRAP_FIRST_INTERRUPT = 32,
	TRAP_CALL = 256, /* no vector: SYSCALL */
};

/* error code of a page fault; PF_PRESENT: the access is mapped and not allowed */
enum { PF_PRESENT = 1 << 0, PF_WRITE = 1 << 1, PF_RESERVED = 1 << 3, PF_EXEC = 1 << 4 };

#define RFLAGS_TRAP       (1ULL << 8)
#define RFLAGS_INTERRUPTS (1ULL << 9)
#define RFLAGS_RESUME     (1ULL << 16)

/* The frame that traps.S pushes, lowest address first. */
struct trap_frame {
	u64 r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax;
	u64 vector, error;
	u64 rip, cs, rflags, rsp, ss; /* pushed by the CPU */
};

/* Did the trap interrupt a program in ring 3? */
static inline bool trap_from_ring3(const struct trap_frame *frame)
{
	return frame->cs & 3;
}
