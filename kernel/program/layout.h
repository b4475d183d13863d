/* Layout of a program's addresses. */
#pragma once

#include <arch/user.h>

#include "kernel/lib/types.h"

/*
 *	USER_START   programs at fixed addresses, usually from 4 MiB on
 *	PIE_BASE     programs that run anywhere; then their heap
 *	...          mappings, from the top down, the interpreter first
 *	STACK_TOP    the first thread's stack, above a gap
 *	VDSO_BASE    the vDSO and its data
 *
 * The addresses are the same in every run, so that runs can be compared. PIE_BASE is where Linux
 * without randomization has it (ELF_ET_DYN_BASE).
 */
#define PIE_BASE     ALIGN_DOWN(USER_END / 3 * 2, PAGE_SIZE)
#define STACK_TOP    (USER_END - MIB(16))
#define VDSO_BASE    (USER_END - MIB(8))
#define VDSO_IMAGE   (VDSO_BASE + PAGE_SIZE) /* behind the page of its data */
#define STACK_BYTES  MIB(8)
#define STACK_GAP    MIB(1)
#define MAPPINGS_TOP (STACK_TOP - STACK_BYTES - STACK_GAP)

/* Does the address lie in the first thread's stack? */
static inline bool layout_in_stack(u64 addr)
{
	return addr >= STACK_TOP - STACK_BYTES && addr < STACK_TOP;
}
