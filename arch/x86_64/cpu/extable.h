/*
 * Instructions that may fault, each with the address to continue at if it does. EXTABLE() makes the
 * entries in inline assembly.
 */
#pragma once

#include "kernel/lib/types.h"

struct trap_frame;

/* Local labels of the instruction that may fault, and of the place to continue at. */
#define EXTABLE(insn, fixup)                                                                       \
	".pushsection ex_table, \"a\"\n.balign 8\n.quad " #insn ", " #fixup "\n.popsection\n"

/*
 * Execute an instruction that may fault; true if it did not. Its operands follow, each read and
 * written, e.g. "+c"(msr).
 */
#define MAY_FAULT(insn, ...)                                                                       \
	({                                                                                         \
		u32 _faulted = 1;                                                                  \
		__asm__ volatile("1: " insn "\n"                                                   \
				 "   xor %[faulted], %[faulted]\n"                                 \
				 "2:\n" EXTABLE(1b, 2b)                                            \
				 : [faulted] "+r"(_faulted), __VA_ARGS__                           \
				 :                                                                 \
				 : "cc", "memory");                                                \
		!_faulted;                                                                         \
	})

/* Access to MSRs that may not exist. False if the instruction faulted. */
bool rdmsr_safe(u32 msr, u64 *value);
bool wrmsr_safe(u32 msr, u64 value);

/*
 * Look frame->rip up in the exception table, which pairs each instruction that may fault with the
 * address to continue at. Called for page faults and for exceptions without a handler of their own,
 * such as general protection faults. True if frame->rip was redirected.
 */
bool extable_fixup(struct trap_frame *frame);
