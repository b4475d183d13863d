/*
 * The loop `gaps` of user_programs.S reads the clock and counts how often its program stood still.
 * bench=quiet runs it on Ashlar, and tests/report/linux/quiet.c on Linux.
 */
#pragma once

#include "kernel/lib/types.h"

enum { GAP_CLASSES = 4 };

/* Shortest gap of each class. */
static const u64 gap_ns[GAP_CLASSES] = {1000, 10000, 100000, 1000000};

/* Written by the thread of a CPU. RDI of the loop; R8 to R11 are gap_ns[] in ticks of the clock. */
struct program {
	u64 running, longest, gaps[GAP_CLASSES];
} __attribute__((aligned(64)));
