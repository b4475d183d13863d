/* Rounds of TLB flushes, for cases and benchmarks that count them or cause them. */
#pragma once

#include <arch/memory.h>

#include "kernel/core/shootdown.h"

static inline struct shootdown_stats stats_now(void)
{
	struct shootdown_stats stats;

	shootdown_stats_read(&stats);
	return stats;
}

/* Shootdown rounds since boot. */
static inline u64 rounds_so_far(void)
{
	return stats_now().flushes;
}

/* An address to be flushed that no code uses, in the last window, above any RAM. */
static inline virt_t some_address(void)
{
	return VMEMMAP_BASE + VMEMMAP_WINDOWS * VMEMMAP_WINDOW_SIZE - GIB(1);
}
