/*
 * The word that the compiler puts between the arrays of a function and its return address, and
 * compares before the function returns (-fstack-protector-strong). Source: Crispin Cowan et al.,
 * "StackGuard: Automatic Adaptive Detection and Prevention of Buffer-Overflow Attacks" (USENIX
 * Security 1998).
 *
 * All CPUs share one word. It is meant to find mistakes, and no code runs here that must not know
 * it. Its lowest byte is zero, so that a string that overruns its array cannot reproduce it
 * unnoticed.
 */
#include <arch/console.h>

#include "arch/x86_64/cpu/msr.h"
#include "arch/x86_64/cpu/stack_guard.h"
#include "kernel/core/panic.h"

/* Names that the compiler knows. */
extern u64 __stack_chk_guard;
void __stack_chk_fail(void);

u64 __stack_chk_guard = 0x5bd1e995c6a4a700ULL;

/*
 * A function that has stored the old word must not return. The functions active when this is called
 * have no arrays (kernel_main(), arch_early_init()).
 */
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
