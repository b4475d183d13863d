/*
 * A pattern for memory that is moved, copied, cleared or handed on. Each 8-byte word is a function
 * of its place (`place`, the address for which the pattern was written) and of its use (`use`). Any
 * byte that is lost, doubled, shifted or overwritten by another user is therefore noticed.
 *
 *	pattern_fill(from, bytes, (virt_t)from, 7);
 *	page_copy(to, from);
 *	EXPECT_PATTERN(to, bytes, (virt_t)from, 7);
 *
 * All sizes and addresses are multiples of 8.
 */
#pragma once

#include "kernel/lib/types.h"
#include "tests/kernel/test.h"

void pattern_fill(void *start, u64 bytes, u64 place, u64 use);

/*
 * Offset of the first byte that differs from the pattern, or that is not 0; `bytes` if there is
 * none.
 */
u64 pattern_wrong(const void *start, u64 bytes, u64 place, u64 use);
u64 pattern_nonzero(const void *start, u64 bytes);

/* The first wrong byte fails the case and is named. Returns true if there is none. */
bool pattern_expect(const void *start, u64 bytes, u64 place, u64 use, const char *file, int line);
bool pattern_expect_zero(const void *start, u64 bytes, const char *file, int line);

#define EXPECT_PATTERN(start, bytes, place, use)                                                   \
	pattern_expect(start, bytes, place, use, __FILE__, __LINE__)
#define EXPECT_ZERO(start, bytes) pattern_expect_zero(start, bytes, __FILE__, __LINE__)
