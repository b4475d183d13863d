/*
 * printf conversions, each compared with the text that ISO C11, 7.21.6.1 prescribes. The hosted
 * runner compares many more with the C library.
 */
#include "kernel/run/machine_page.h"
#include "tests/kernel/test.h"

/* The expected result is given as text. In the hosted runner the C library must produce it, too. */
#ifdef ASHLAR_HOSTED
int snprintf(char *buf, size_t size, const char *fmt, ...) __printf(3, 4);
#define LIBC_AGREES(...)                                                                           \
	do {                                                                                       \
		char _theirs[256];                                                                 \
		int _n = snprintf(_theirs, sizeof(_theirs), __VA_ARGS__);                          \
		if (_n != _len || strcmp(_theirs, _ours))                                          \
			test_fail(__FILE__, __LINE__, "ours \"%s\" (%d), C library's \"%s\" (%d)", \
				  _ours, _len, _theirs, _n);                                       \
	} while (0)
#else
#define LIBC_AGREES(...) ((void)0)
#endif

#define EXPECT_FORMAT(want, ...)                                                                   \
	do {                                                                                       \
		char _ours[256];                                                                   \
		int _len = format(_ours, sizeof(_ours), __VA_ARGS__);                              \
		if (strcmp(_ours, want) || _len != (int)strlen(want))                              \
			test_fail(__FILE__, __LINE__, "got \"%s\" (%d), want \"%s\"", _ours, _len, \
				  want);                                                           \
		LIBC_AGREES(__VA_ARGS__);                                                          \
	} while (0)

/* Odd combinations are the point here. */
#pragma GCC diagnostic ignored "-Wformat"

TEST(kernel_format, text)
{
	EXPECT_FORMAT("|ab|   ab|ab   |", "|%s|%5s|%-5s|", "ab", "ab", "ab");
	EXPECT_FORMAT("|abc|  abc||", "|%.3s|%5.3s|%.0s|", "abcdef", "abcdef", "abcdef");
	EXPECT_FORMAT("|x|    x|x    |", "|%c|%5c|%-5c|", 'x', 'x', 'x');
	EXPECT_FORMAT("100%", "%d%%", 100);
	EXPECT_FORMAT("", "%s", "");
	EXPECT_FORMAT("|    7|7    |", "|%*d|%*d|", 5, 7, -5, 7);
}

TEST(kernel_format, never_writes_beyond_size)
{
	char buf[8];

	for (size_t size = 0; size <= sizeof(buf); size++) {
		memset(buf, '#', sizeof(buf));
		EXPECT_EQ(format(buf, size, "%d-%s", 1234, "abcdef"), 11);
		if (size > 0)
			EXPECT_EQ(strnlen(buf, size), MIN(size - 1, (size_t)11));
		for (size_t i = size; i < sizeof(buf); i++)
			EXPECT_EQ(buf[i], '#');
	}
}

#ifdef ASHLAR_HOSTED
/*
 * Compare every combination of flags, width, precision and conversion with the C library, for
 * values at the edges.
 */
static void compare_one(const char *fmt, unsigned long long value)
{
	char ours[128], theirs[128];
	int n = format(ours, sizeof(ours), fmt, value),
	    m = snprintf(theirs, sizeof(theirs), fmt, value);

	if (n != m || strcmp(ours, theirs))
		test_fail(__FILE__, __LINE__, "%s of 0x%llx: ours \"%s\", C library's \"%s\"", fmt,
			  value, ours, theirs);
}

TEST(kernel_format, all_combinations_as_libc)
{
	static const char *const flags[] = {"",   "-",  "0",  "+",  " ",   "#",   "-+",
					    "0+", "0 ", "-#", "0#", "+0#", "- 0#"};
	static const char *const sizes[] = {"",   "1",   "7",   "24",  ".0",  ".1",
					    ".5", ".24", "7.0", "7.3", "9.8", "24.22"};
	static const char *const conversions[] = {"lld", "llu", "llx", "llX", "llo", "d",
						  "u",   "x",   "hhd", "hu",  "hx"};
	static const unsigned long long values[] = {
		0, 1, 9, 10, 0x7f, 0x80, 0xffff, 0x7fffffff, 0x80000000, ~0ULL, 1ULL << 63};
	char fmt[32];

	for (size_t f = 0; f < ARRAY_LEN(flags); f++)
		for (size_t s = 0; s < ARRAY_LEN(sizes); s++)
			for (size_t c = 0; c < ARRAY_LEN(conversions); c++)
				for (size_t v = 0; v < ARRAY_LEN(values) && !test_failed(); v++) {
					format(fmt, sizeof(fmt), "%%%s%s%s", flags[f], sizes[s],
					       conversions[c]);
					compare_one(fmt, values[v]);
				}
}
#endif

/*
 * Rows of the machine page are broken at blanks. They are never longer than the screen is wide, and
 * never empty while there is text.
 */
TEST(kernel_format, rows_are_broken_at_blanks)
{
	EXPECT_EQ(sheet_break("", 10), 0);
	EXPECT_EQ(sheet_break("one two", 7), 7);
	EXPECT_EQ(sheet_break("one two three", 7), 7);
	EXPECT_EQ(sheet_break("one two three", 6), 3);
	EXPECT_EQ(sheet_break("one two three", 8), 7);
	EXPECT_EQ(sheet_break("unbreakable", 4), 4);
	EXPECT_EQ(sheet_break(" begins blank", 5), 5);
}
