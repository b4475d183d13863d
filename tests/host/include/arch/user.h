/*
 * Ring 3, hosted: there is none. A "program" is a C function of a test, which user_enter() calls.
 * What it does through the table of user_ops is what a real program's calls and faults would do.
 *
 * The kernel's own regions lie in the lower half here (arch/memory.h), so a program's addresses end
 * below them. Nothing is ever mapped at a program's addresses: the page tables are data.
 */
#pragma once

#include "arch/x86_64/include/arch/user.h"

#undef USER_END
#define USER_END 0x7e0000000000ULL

/*
 * The program. user_enter() calls it with a copy of its registers, and returns when the function
 * returns or calls user_leave(). NULL: user_enter() returns at once. Each CPU calls the same one.
 */
extern void (*host_user_program)(struct user_regs *regs);

/*
 * What happens at a program's return to ring 3: calls attend() if user_attend() was called for this
 * CPU. The program calls it where a real one would return from a call or an interrupt.
 */
void host_user_return(struct user_regs *regs);
