/*
 * Traps: exceptions and interrupts.
 *
 * All 256 vectors have a gate; all gates turn interrupts off. NMI, double fault and machine check
 * run on stacks of their own (IST). Interrupts (vector 32 and up) leave the idle state before
 * anything else (kernel/core/shootdown.h).
 */
#pragma once

#include "kernel/lib/types.h"

enum trap_vector {
	TRAP_DIVIDE = 0,
	TRAP_NMI = 2,
	TRAP_BREAKPOINT = 3,
	TRAP_INVALID_OPCODE = 6,
	TRAP_DOUBLE_FAULT = 8,
	TRAP_STACK = 12,
	TRAP_GP = 13,
	TRAP_PAGE_FAULT = 14,
	TRAP_MACHINE_CHECK = 18,
	TRAP_FIRST_INTERRUPT = 32,
};

enum { PF_WRITE = 1 << 1, PF_RESERVED = 1 << 3, PF_EXEC = 1 << 4 }; /* error code of a page fault */

#define RFLAGS_INTERRUPTS (1ULL << 9)

/* The frame that traps.S pushes, lowest address first. */
struct trap_frame {
	u64 r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax;
	u64 vector, error;
	u64 rip, cs, rflags, rsp, ss; /* pushed by the CPU */
};

typedef void trap_handler_fn(struct trap_frame *frame);

/*
 * Set fn as the handler of `vector`. It runs in trap context, with interrupts off. Interrupt
 * handlers acknowledge the APIC themselves. When an NMI handler returns, the interrupted code
 * resumes. NULL restores the default: a panic for exceptions, a warning for interrupts. Call once,
 * at start-up, before the vector can occur.
 */
void trap_set_handler(unsigned vector, trap_handler_fn *fn);

/*
 * Handle the trap whose registers traps.S saved. True if the return must leave NMIs blocked,
 * because the frame lies inside an NMI (or inside a machine check, where that does no harm). If an
 * NMI or a machine check saved a frame at halt_insn (the HLT of cpu_halt_until_interrupt()), the
 * frame's RIP is moved behind it.
 */
bool trap_dispatch(struct trap_frame *frame);
extern const char halt_insn[];

/* Fill the IDT (boot CPU, once) and load it (every CPU). */
void traps_init(void);
void traps_load(void);

/*
 * The address at which `frame` was taken, then its callers, innermost first; at most `max`. Returns
 * how many were stored. Any context.
 */
size_t backtrace_of(const struct trap_frame *frame, virt_t *out, size_t max);

/*
 * Look frame->rip up in the exception table, which pairs each instruction that may fault with the
 * address to continue at. Called for page faults and for exceptions without a handler of their own,
 * such as general protection faults. True if frame->rip was redirected.
 */
bool extable_fixup(struct trap_frame *frame);
