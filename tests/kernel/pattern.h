/*
 * A pattern for memory that is moved, copied, cleared or handed on: each 8-byte word is a function
 * of where it is (`place`, the address the pattern was written for) and of what for (`use`), so
 * that no byte may be lost, doubled, shifted or another's without being noticed.
 *
 *	pattern_fill(from, bytes, (virt_t)from, 7);
 *	page_copy(to, from);
 *	EXPECT_PATTERN(to, bytes, (virt_t)from, 7);
 *
 * All sizes are multiples of 8, all addresses too.
 */
#pragma once

#include "kernel/lib/types.h"
#include "kernel/run/test.h"

void pattern_fill(void *start, u64 bytes, u64 place, u64 use);

/* Offset of the first byte that is not the pattern's, or not 0; `bytes` if there is none. */
u64 pattern_wrong(const void *start, u64 bytes, u64 place, u64 use);
u64 pattern_nonzero(const void *start, u64 bytes);

/* The first wrong byte fails the case, by name. What these return is whether there was none. */
bool pattern_expect(const void *start, u64 bytes, u64 place, u64 use, const char *file, int line);
bool pattern_expect_zero(const void *start, u64 bytes, const char *file, int line);

#define EXPECT_PATTERN(start, bytes, place, use)                                                   \
	pattern_expect(start, bytes, place, use, __FILE__, __LINE__)
#define EXPECT_ZERO(start, bytes) pattern_expect_zero(start, bytes, __FILE__, __LINE__)
