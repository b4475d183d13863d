/*
 * Traps: exceptions and interrupts.
 *
 * All 256 vectors have a gate; all gates turn interrupts off. NMI, double fault and machine check run on stacks of
 * their own (IST). Interrupts (vector 32 and up) leave the idle state before anything else (kernel/shootdown.h).
 */
#pragma once

#include "kernel/types.h"

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

/* What traps.S pushes, lowest address first. */
struct trap_frame {
	u64 r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax;
	u64 vector, error;
	u64 rip, cs, rflags, rsp, ss; /* pushed by the CPU */
};

typedef void trap_handler_fn(struct trap_frame *frame);

/*
 * Handle `vector` with fn, in trap context, interrupts off. Interrupt handlers acknowledge the APIC themselves. An NMI
 * handler that returns resumes what was interrupted. NULL restores the default: a panic for exceptions, a warning for
 * interrupts. Once, at start-up, before the vector can occur.
 */
void trap_set_handler(unsigned vector, trap_handler_fn *fn);

/*
 * Handle what traps.S saved. True if the return must leave NMIs blocked, because the frame lies inside one (or inside a machine
 * check, where that does no harm). A frame at halt_insn (the HLT of cpu_halt_until_interrupt()) that an NMI or a machine check
 * saved is moved on behind it.
 */
bool trap_dispatch(struct trap_frame *frame);
extern const char halt_insn[];

/* Fill the IDT (boot CPU, once) and load it (every CPU). */
void traps_init(void);
void traps_load(void);

/* Where `frame` was taken and its callers, innermost first; at most `max`. Returns how many. Any context. */
size_t backtrace_of(const struct trap_frame *frame, virt_t *out, size_t max);

/*
 * Exception table: pairs of an instruction that may fault and where to go on if it does. Looked up for page faults and
 * general protection faults. True if frame->rip was redirected.
 */
bool extable_fixup(struct trap_frame *frame);
