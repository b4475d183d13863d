/*
 * Ring 3, hosted: there is none. A "program" is a C function of a test, which user_enter() calls.
 * It makes calls and faults by means of the functions below, which do what the entry code of a real
 * CPU does.
 *
 * The kernel's own regions lie in the lower half here (arch/memory.h), so a program's addresses end
 * below them. Nothing is ever mapped at a program's addresses: the page tables are data.
 */
#pragma once

#include "arch/x86_64/include/arch/user.h"

#undef USER_END
#define USER_END REGIONS_BASE

/*
 * The program. user_enter() calls it with a copy of its registers, and returns when the function
 * returns or user_leave() is called. NULL: user_enter() returns at once. Every CPU calls the same
 * function.
 */
extern void (*host_user_program)(struct trap_frame *regs);

/*
 * Set by a case: the CPU is quiet while it runs the program, as in ring 3. Such a program uses
 * nothing of the kernel but the two functions below and what is for any context.
 */
extern bool host_user_is_quiet;

/* A call and a page fault of the program, each with its return to ring 3. */
void host_user_call(struct trap_frame *regs);
void host_user_fault(struct trap_frame *regs, virt_t addr, enum user_access access);
