/*
 * The watcher, tests/host/check.c, and the trace, tests/host/trace.c. Only the checked backend watches.
 */
#pragma once

#include <arch/check_event.h>

#include "kernel/types.h"

/* Before a function that compares memory with what it should be, whoever wrote it: what it reads counts as written. */
#ifdef __SANITIZE_MEMORY__
#define CHECK_READS_ANYTHING __attribute__((no_sanitize("memory"), noinline))
#else
#define CHECK_READS_ANYTHING
#endif

#ifdef HOST_FAST
static inline void check_frames_reused(pfn_t pfn, u64 count)
{
	(void)pfn;
	(void)count;
}

static inline void check_event(enum check_event event, u64 a, u64 b)
{
	(void)event;
	(void)a;
	(void)b;
}
#else
/*
 * These frames are about to get new contents or a new owner: no CPU may still hold a translation to them that changed.
 * Aborts the run with the CPU, the frame, the address and the place of the change otherwise.
 */
void check_frames_reused(pfn_t pfn, u64 count);

/* Write down a step of this CPU, if a trace was asked for (ashlar-host -e). Any context. */
void check_event(enum check_event event, u64 a, u64 b);
#endif

/* Hosted, what clears is C, and looked at by the sanitizers. */
static inline void check_cleared(const void *addr, u64 bytes)
{
	(void)addr;
	(void)bytes;
}
