/*
 * A pattern that depends on address and use: see pattern.h.
 */
#include "tests/kernel/pattern.h"

/*
 * Every bit of the place and of the use changes about half of the word's bits (Steele, Lea, Flood,
 * "Fast splittable pseudorandom number generators", 2014).
 */
static inline u64 word_of(u64 place, u64 use)
{
	u64 x = place + use * 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

void pattern_fill(void *start, u64 bytes, u64 place, u64 use)
{
	u64 *word = start;

	for (u64 i = 0; i < bytes / sizeof(*word); i++)
		word[i] = word_of(place + i * sizeof(*word), use);
}

static u64 first_byte(u64 difference)
{
	return (u64)__builtin_ctzll(difference) / 8;
}

u64 pattern_wrong(const void *start, u64 bytes, u64 place, u64 use)
{
	const u64 *word = start;

	for (u64 i = 0; i < bytes / sizeof(*word); i++) {
		const u64 want = word_of(place + i * sizeof(*word), use);

		if (word[i] != want)
			return i * sizeof(*word) + first_byte(word[i] ^ want);
	}
	return bytes;
}

u64 pattern_nonzero(const void *start, u64 bytes)
{
	const u64 *word = start;

	for (u64 i = 0; i < bytes / sizeof(*word); i++)
		if (word[i])
			return i * sizeof(*word) + first_byte(word[i]);
	return bytes;
}

static bool none_wrong(const void *start, u64 at, u64 bytes, const char *what, const char *file,
		       int line)
{
	if (at == bytes)
		return true;
	test_fail(file, line, "byte %llu of %llu at %p is %02x, not %s", at, bytes, start,
		  ((const u8 *)start)[at], what);
	return false;
}

bool pattern_expect(const void *start, u64 bytes, u64 place, u64 use, const char *file, int line)
{
	return none_wrong(start, pattern_wrong(start, bytes, place, use), bytes,
			  "as it was written", file, line);
}

bool pattern_expect_zero(const void *start, u64 bytes, const char *file, int line)
{
	return none_wrong(start, pattern_nonzero(start, bytes), bytes, "zero", file, line);
}
