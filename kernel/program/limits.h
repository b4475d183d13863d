/*
 * Limits of resources (prlimit). They are kept and reported. RLIMIT_AS and RLIMIT_DATA are obeyed
 * (commit.h).
 */
#pragma once

#include "kernel/lib/types.h"

enum limit {
	RLIMIT_CPU,
	RLIMIT_FSIZE,
	RLIMIT_DATA,
	RLIMIT_STACK,
	RLIMIT_CORE,
	RLIMIT_RSS,
	RLIMIT_NPROC,
	RLIMIT_NOFILE,
	RLIMIT_MEMLOCK,
	RLIMIT_AS,
	RLIMIT_LOCKS,
	RLIMIT_SIGPENDING,
	RLIMIT_MSGQUEUE,
	RLIMIT_NICE,
	RLIMIT_RTPRIO,
	RLIMIT_RTTIME,
	RLIMITS,
};

#define RLIMIT_NONE (~0ULL)

struct limit_pair {
	u64 soft, hard;
};

/* Before a program starts: a stack of 8 MiB, 1024 files, everything else without limit. */
void limits_begin(void);

struct limit_pair limit_of(enum limit limit);
u64 limit_soft(enum limit limit); /* takes no lock */
