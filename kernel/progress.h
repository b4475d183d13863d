/*
 * Long operations say how far they are, and can be stopped.
 *
 *	struct progress p = progress_begin("grow", "pages", 100000);
 *	while (more && !progress_stopped(&p, done)) ...
 *
 *	  grow: 40960 of 100000 pages, 51200/s, 1.2 s left
 *
 * At most one line a second, so a 115200 line has time for everything else, and nothing at all for what takes less.
 */
#pragma once

#include "kernel/types.h"

struct progress {
	const char *what, *unit;
	u64 total, start, shown;
};

struct progress progress_begin(const char *what, const char *unit, u64 total);

/* `done` of total so far: says so if a second has passed. True if Ctrl-C was typed: clean up and return -EINTR. */
bool progress_stopped(struct progress *progress, u64 done);
