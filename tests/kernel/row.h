/* Tables of a case: which row failed. */
#pragma once

#include "kernel/core/printk.h"
#include "kernel/lib/format.h"
#include "kernel/run/test.h"

/* Has the case passed so far? If not, name the row of its table that it just did. */
__printf(1, 2) static inline bool row_passed(const char *fmt, ...)
{
	char row[64];
	va_list args;

	va_start(args, fmt);
	vformat(row, sizeof(row), fmt, args);
	va_end(args);
	if (test_failed())
		print("  # in the row of %s\n", row);
	return !test_failed();
}
