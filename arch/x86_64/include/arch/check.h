/*
 * Hooks through which the hosted arch checks that mm/ obeys its rules (tests/host/check.c). They do
 * nothing on hardware.
 */
#pragma once

#include <arch/check_event.h>

#include "kernel/lib/types.h"

/*
 * Put before a function that compares memory with its expected content, whether or not the memory
 * is free and regardless of which code wrote it.
 */
#ifdef ASHLAR_SAN
#define CHECK_READS_ANYTHING __attribute__((no_sanitize("kernel-address"), noinline))
#else
#define CHECK_READS_ANYTHING
#endif

/*
 * These frames are about to get new contents or a new owner. No CPU may still hold a translation to
 * them that has been changed.
 */
static inline void check_frames_reused(pfn_t pfn, u64 count)
{
}

/* Record a step of this CPU. Any context. */
static inline void check_event(enum check_event event, u64 a, u64 b)
{
}

/*
 * Cost of simulation and of checks so far. All zero on hardware, where nothing is simulated.
 */
struct check_spent {
	bool simulated;  /* hosted */
	u64 ns;          /* of all CPUs together */
	u64 host_faults; /* page faults that the host took for this CPU */
};

static inline void check_spent(struct check_spent *out)
{
	*out = (struct check_spent){.simulated = false};
}

/*
 * Call before assembly clears `bytes` at `addr`, which a sanitizer that instruments C would not
 * see.
 */
#ifdef ASHLAR_SAN
void check_cleared(const void *addr, u64 bytes);
#else
static inline void check_cleared(const void *addr, u64 bytes)
{
}
#endif
