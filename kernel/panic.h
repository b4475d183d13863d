/*
 * Broken invariants. A panic states the invariant in words, prints registers and a symbolised backtrace, stops the
 * other CPUs, and ends the run with verdict "crash". Lack of memory and bad input never come here.
 */
#pragma once

#include "kernel/types.h"

__noreturn void panic(const char *fmt, ...) __printf(1, 2);

/* True once any CPU panics: waits give up, locks are no longer taken. */
extern bool panic_in_progress;

/* CPU that panicked first, or CPU_NONE; true if it is this one (its waits return instead of giving up the CPU). */
extern cpu_t panic_owner;
bool panic_is_ours(void);

/* State what must hold, and what is wrong if it does not, in words with the offending values. */
#define ASSERT(cond, ...)                                                                                              \
	do {                                                                                                           \
		if (unlikely(!(cond)))                                                                                 \
			panic("broken invariant (" #cond "): " __VA_ARGS__);                                           \
	} while (0)

/* The same, where the check costs too much for every build: compiled in with DEBUG=1 and in hosted builds. */
#ifdef ASHLAR_DEBUG
#define DEBUG_ASSERT(cond, ...) ASSERT(cond, __VA_ARGS__)
#else
#define DEBUG_ASSERT(cond, ...) ((void)sizeof(cond))
#endif
