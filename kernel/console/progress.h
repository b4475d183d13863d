/*
 * Long operations report their progress, and can be stopped.
 *
 *	struct progress p = progress_begin("grow", "pages", 100000);
 *	while (more && !progress_stopped(&p, done)) ...
 *
 *	  grow: 40960 of 100000 pages, 51200/s, 1.2 s left
 *
 * At most one line is printed per second, so a 115200 line has time for everything else. An
 * operation that takes less than a second prints nothing.
 */
#pragma once

#include "kernel/lib/types.h"

struct progress {
	const char *what, *unit;
	u64 total, start, shown;
};

struct progress progress_begin(const char *what, const char *unit, u64 total);

/*
 * Report that `done` of the total is done, with a line if a second has passed. True if Ctrl-C was
 * typed: the caller must clean up and return -EINTR.
 */
bool progress_stopped(struct progress *progress, u64 done);
