/*
 * Instructions that may fault, each with the address to continue at if it does. EXTABLE() makes the
 * entries in inline assembly (lookup: arch/x86_64/traps.h).
 */
#pragma once

#include "kernel/lib/types.h"

/* Local labels of the instruction that may fault, and of the place to continue at. */
#define EXTABLE(insn, fixup)                                                                       \
	".pushsection ex_table, \"a\"\n.balign 8\n.quad " #insn ", " #fixup "\n.popsection\n"

/* Access to MSRs that may not exist. False if the instruction faulted (arch/x86_64/extable.c). */
bool rdmsr_safe(u32 msr, u64 *value);
bool wrmsr_safe(u32 msr, u64 value);
