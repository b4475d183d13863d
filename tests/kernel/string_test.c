/*
 * Memory and string functions, at every alignment and length that a loop over words could get
 * wrong, glob matching, and the macros that every file uses.
 */
#include "tests/kernel/test.h"

enum { AREA = 384, SPAN = 24, LONG = 256 };

static void fill(u8 *area)
{
	for (unsigned i = 0; i < AREA; i++)
		area[i] = (u8)(i * 7 + 1);
}

/*
 * Check memmove() from `from` to `to` inside one area against its definition: as if through a copy.
 */
static void check_move(unsigned from, unsigned to, unsigned n)
{
	u8 area[AREA], before[AREA];

	fill(area);
	fill(before);
	memmove(area + to, area + from, n);
	for (unsigned i = 0; i < AREA; i++) {
		u8 want = i >= to && i < to + n ? before[from + i - to] : before[i];

		if (area[i] != want)
			test_fail(__FILE__, __LINE__,
				  "memmove %u bytes %u -> %u: byte %u is %u, want %u", n, from, to,
				  i, area[i], want);
	}
}

TEST(kernel_string, memmove_overlaps)
{
	for (unsigned from = 0; from < SPAN && !test_failed(); from++)
		for (unsigned to = 0; to < SPAN; to++)
			for (unsigned n = 0; n <= SPAN; n++)
				check_move(from, to, n);
}

/* Long areas are copied by one instruction, and what is no whole word behind it. */
TEST(kernel_string, long_areas_overlap_and_end_anywhere)
{
	for (unsigned from = 0; from < SPAN && !test_failed(); from += 5)
		for (unsigned to = 0; to < SPAN; to += 3)
			for (unsigned n = LONG - 2; n <= LONG + SPAN; n++)
				check_move(from, to, n);
}

/* Bytes are compared as words where possible, and none beyond the length counts. */
TEST(kernel_string, compare_finds_each_byte_and_none_beyond)
{
	enum { MOST = 40 };
	u8 a[MOST + 9], b[MOST + 9];

	for (size_t n = 0; n <= MOST; n++) {
		for (size_t at = 0; at < MOST + 8; at++) {
			for (size_t i = 0; i < sizeof(a); i++)
				a[i] = b[i] = (u8)(i * 37);
			a[1 + at] = 200;
			b[1 + at] = 100;
			EXPECT(at < n ? memcmp(a + 1, b + 1, n) > 0 && memcmp(b + 1, a + 1, n) < 0
				      : memcmp(a + 1, b + 1, n) == 0);
		}
	}
}

static u64 looks;

/* A value that another CPU may change between two reads. */
static u64 changing(void)
{
	return ++looks * 10;
}

TEST(kernel_string, the_smaller_of_two_is_looked_at_once)
{
	looks = 0;
	EXPECT_EQ(MIN(changing(), 100u), 10);
	EXPECT_EQ(MIN(5, changing()), 5);
	EXPECT_EQ(MAX(changing(), 7u), 30);
	EXPECT_EQ(MAX(1000, changing()), 1000);
	EXPECT_EQ(MIN(MIN(changing(), changing()), MAX(changing(), 3u)), 50);
	EXPECT_EQ(looks, 7);
}
