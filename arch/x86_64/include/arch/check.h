/*
 * Hooks by which the hosted arch watches mm/ for broken rules (tests/host/check.c). Nothing on hardware.
 */
#pragma once

#include <arch/check_event.h>

#include "kernel/types.h"

/* Before a function that compares memory with what it should be, whoever wrote it and whether or not it is free. */
#ifdef ASHLAR_SAN
#define CHECK_READS_ANYTHING __attribute__((no_sanitize("kernel-address"), noinline))
#else
#define CHECK_READS_ANYTHING
#endif

/* These frames are about to get new contents or a new owner: no CPU may still hold a translation to them that changed. */
static inline void check_frames_reused(pfn_t pfn, u64 count)
{
	(void)pfn;
	(void)count;
}

/* Write down a step of this CPU. Any context. */
static inline void check_event(enum check_event event, u64 a, u64 b)
{
	(void)event;
	(void)a;
	(void)b;
}

/* Before assembly clears so much, where a sanitizer that instruments C would not see it. */
#ifdef ASHLAR_SAN
void check_cleared(const void *addr, u64 bytes);
#else
static inline void check_cleared(const void *addr, u64 bytes)
{
	(void)addr;
	(void)bytes;
}
#endif
