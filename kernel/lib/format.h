/* Text into a buffer, as printf() makes it. Any context. */
#pragma once

#include <stdarg.h>

#include "kernel/lib/types.h"

/*
 * The usual printf conversions: %d %i %u %x %X %o %c %s %p %%, flags - 0 + space #, width and
 * precision (also *), lengths hh h l ll z t j. There is no floating point; callers scale integers.
 * The text is always terminated when size > 0. Returns the length the whole text would have had.
 */
int format(char *buf, size_t size, const char *fmt, ...) __printf(3, 4);
int vformat(char *buf, size_t size, const char *fmt, va_list args);

/* vformat() in a function whose last named parameter is `fmt`, with the arguments behind it. */
#define FORMAT_ARGS(buf, size, fmt)                                                                \
	({                                                                                         \
		va_list _args;                                                                     \
		int _length;                                                                       \
		va_start(_args, fmt);                                                              \
		_length = vformat(buf, size, fmt, _args);                                          \
		va_end(_args);                                                                     \
		_length;                                                                           \
	})
