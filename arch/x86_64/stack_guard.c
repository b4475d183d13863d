/*
 * What the compiler puts between the arrays of a function and its return address, and compares before it returns
 * (-fstack-protector-strong). Source: Crispin Cowan et al., "StackGuard: Automatic Adaptive Detection and Prevention of
 * Buffer-Overflow Attacks" (USENIX Security 1998).
 *
 * One word for all CPUs: it is to find mistakes, and nothing here runs that should not know it. Its lowest byte is zero, so
 * that no string that runs over its end writes it unnoticed.
 */
#include <arch/console.h>

#include "arch/x86_64/cpu.h"
#include "arch/x86_64/msr.h"
#include "kernel/panic.h"

/* Names that the compiler knows. */
extern u64 __stack_chk_guard;
void __stack_chk_fail(void);

u64 __stack_chk_guard = 0x5bd1e995c6a4a700ULL;

/* Who has taken the old word down must not return: those that are active now have no arrays (kernel_main(), arch_early_init()). */
void stack_guard_choose(void)
{
	__stack_chk_guard = (rdtsc() * 0x9e3779b97f4a7c15ULL) & ~0xffULL;
}

void __stack_chk_fail(void)
{
	u64 offset = 0;
	const char *name = symbol_lookup((virt_t)__builtin_return_address(0), &offset);

	panic("stack smashed: %s wrote beyond an array of its own", name ? name : "a function");
}
