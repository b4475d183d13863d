/*
 * The watcher: tests/host/check.c. Only the checked backend watches.
 */
#pragma once

#include "kernel/types.h"

#ifdef HOST_FAST
static inline void check_frames_reused(pfn_t pfn, u64 count)
{
	(void)pfn;
	(void)count;
}
#else
/*
 * These frames are about to get new contents or a new owner: no CPU may still hold a translation to them that changed.
 * Aborts the run with the CPU, the frame, the address and the place of the change otherwise.
 */
void check_frames_reused(pfn_t pfn, u64 count);
#endif
