/*
 * Broken invariants. A panic states the invariant in words, prints registers and a symbolised
 * backtrace, stops the other CPUs, and ends the run with verdict "crash". Lack of memory and bad
 * input never cause a panic.
 */
#pragma once

#include "kernel/lib/types.h"

__noreturn void panic(const char *fmt, ...) __printf(1, 2);

/* True once any CPU panics: waits give up, and locks are no longer taken. */
extern bool panic_in_progress;

/*
 * The CPU that panicked first, or CPU_NONE. panic_is_ours(): true on that CPU, whose waits
 * neither halt it nor panic again.
 */
extern cpu_t panic_owner;
bool panic_is_ours(void);

/* Panic unless `cond` holds. The message says in words what is wrong, with the offending values. */
#define ASSERT(cond, ...)                                                                          \
	do {                                                                                       \
		if (unlikely(!(cond)))                                                             \
			panic("broken invariant (" #cond "): " __VA_ARGS__);                       \
	} while (0)

/*
 * ASSERT() for a check that costs too much for every build: compiled in with DEBUG=1 and in hosted
 * builds.
 */
#ifdef ASHLAR_DEBUG
#define DEBUG_ASSERT(cond, ...) ASSERT(cond, __VA_ARGS__)
#else
#define DEBUG_ASSERT(cond, ...) ((void)sizeof(cond))
#endif
