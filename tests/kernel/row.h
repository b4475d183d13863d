/* Tables and sweeps of a case: which row failed, and how many places. */
#pragma once

#include "kernel/core/printk.h"
#include "kernel/lib/format.h"
#include "tests/kernel/arena.h"

/* Has the case passed so far? If not, name the row of its table that it just did. */
__printf(1, 2) static inline bool row_passed(const char *fmt, ...)
{
	char row[64];

	FORMAT_ARGS(row, sizeof(row), fmt);
	if (test_failed())
		print("  # in the row of %s\n", row);
	return !test_failed();
}

/*
 * The end of a sweep over places that fail one at a time, of which `last` was the last. At least
 * `least` must have failed; otherwise the sweep missed its target. With 0, none may have.
 */
static inline void sweep_ended(const char *name, const char *mode, u32 last, u32 least)
{
	if (test_failed())
		print("  # %s, mode %s: failure %u of this operation\n", name, mode, last);
	else if (sweep_next(last) <= least || (least == 0 && last > 0))
		test_fail(__FILE__, __LINE__, "%s, mode %s, met %u failures", name, mode, last);
	else
		print("  # %s, mode %s: places up to number %u failed, one at a time\n", name, mode,
		      last);
}
