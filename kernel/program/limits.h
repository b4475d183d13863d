/*
 * Limits of resources (prlimit). They are kept and reported. RLIMIT_AS and RLIMIT_DATA are obeyed
 * (commit.h).
 */
#pragma once

#include "kernel/lib/types.h"

enum limit {
	RLIMIT_DATA = 2,
	RLIMIT_STACK = 3,
	RLIMIT_CORE = 4,
	RLIMIT_NOFILE = 7,
	RLIMIT_AS = 9,
	RLIMIT_NICE = 13,
	RLIMIT_RTPRIO = 14,
	RLIMITS = 16,
};

#define RLIMIT_NONE (~0ULL)

struct limit_pair {
	u64 soft, hard;
};

/* Before a program starts: a stack of 8 MiB, 1024 files, everything else without limit. */
void limits_begin(void);

u64 limit_soft(enum limit limit); /* takes no lock */
