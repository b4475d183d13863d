/*
 * The watcher (tests/host/check.c) and the trace (tests/host/trace.c). Only the checked backend
 * watches.
 */
#pragma once

#include <arch/check_event.h>

#include "kernel/lib/types.h"

/*
 * Put before a function that compares memory with its expected content, regardless of which code
 * wrote it. All that it reads counts as written.
 */
#ifdef __SANITIZE_MEMORY__
#define CHECK_READS_ANYTHING __attribute__((no_sanitize("memory"), noinline))
#else
#define CHECK_READS_ANYTHING
#endif

#ifdef HOST_FAST
static inline void check_frames_reused(pfn_t pfn, u64 count)
{
}

static inline void check_event(enum check_event event, u64 a, u64 b)
{
}
#else
/*
 * These frames are about to get new contents or a new owner. No CPU may still hold a translation to
 * them that has been changed. Otherwise the run ends, and the report names the CPU, the frame, the
 * address and the place of the change.
 */
void check_frames_reused(pfn_t pfn, u64 count);

/* Record a step of this CPU, if a trace was requested (ashlar-host -e). Any context. */
void check_event(enum check_event event, u64 a, u64 b);
#endif

/* The contract is the one of the real interface; tests/host/simulate.c. */
struct check_spent {
	bool simulated;  /* hosted */
	u64 ns;          /* of all CPUs together */
	u64 host_faults; /* page faults that the host took for this CPU */
};
void check_spent(struct check_spent *out);

/* Empty when hosted, because clearing there is C code that the sanitizers see. */
static inline void check_cleared(const void *addr, u64 bytes)
{
}
