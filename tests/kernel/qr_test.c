/*
 * QR codes, checked by reading them as ISO/IEC 18004 says, with the arithmetic of a reader: powers
 * and logarithms. zbar reads those of a screen (tests/qemu/test_metal.py).
 */
#include "kernel/lib/qr.h"
#include "tests/kernel/random.h"
#include "tests/kernel/test.h"

enum { WORDS = QR_BLOCKS * (QR_BLOCK_DATA + QR_BLOCK_CHECK), LAST = QR_SIDE - 1 };

static struct qr qr;
static u8 words[WORDS], power[255];
static u8 logarithm[256];

/* Near a finder, with format and version; on a timing line; in an alignment pattern. */
static bool fixed(int row, int column)
{
	/* 4 to 8, 32 to 36, 60 to 64 */
	const bool aligned = (row + 24) % 28 <= 4 && (column + 24) % 28 <= 4;
	const bool up = row < 9, left = column < 9;

	if ((up && left) || (up && column > LAST - 8) || (left && row > LAST - 8))
		return true;
	if ((row < 6 && column > LAST - 11) || (column < 6 && row > LAST - 11))
		return true;
	if (row == 6 || column == 6)
		return true;
	return aligned && !(up && column > LAST - 9) && !(left && row > LAST - 9);
}

static void read_words(void)
{
	unsigned bit = 0;
	bool upwards = true;

	memset(words, 0, sizeof(words));
	for (int right = LAST; right > 0; right -= 2, upwards = !upwards) {
		right -= right == 6;
		for (int i = 0; i <= LAST; i++) {
			for (int column = right; column >= right - 1; column--) {
				const int row = upwards ? LAST - i : i;
				const bool mask = (row + column) % 2 == 0;

				if (fixed(row, column))
					continue;
				if (bit / 8 < WORDS && (qr.module[row][column] ^ mask))
					words[bit / 8] |= 0x80 >> bit % 8;
				bit++;
			}
		}
	}
	EXPECT_EQ(bit, WORDS * 8);
}

/* Byte i of a block, data first. */
static u8 word(unsigned block, unsigned i)
{
	const unsigned check = i - QR_BLOCK_DATA;

	if (i < QR_BLOCK_DATA)
		return words[i * QR_BLOCKS + block];
	return words[QR_BLOCKS * QR_BLOCK_DATA + check * QR_BLOCKS + block];
}

/* A block is a polynomial that is 0 at the first 26 powers of 2, if nothing was misread. */
static void expect_no_misreading(unsigned block)
{
	for (unsigned i = 0; i < QR_BLOCK_CHECK; i++) {
		u8 sum = 0;

		for (unsigned j = 0; j < QR_BLOCK_DATA + QR_BLOCK_CHECK; j++) {
			const unsigned from_end = QR_BLOCK_DATA + QR_BLOCK_CHECK - 1 - j;
			const u8 w = word(block, j);

			if (w)
				sum ^= power[(logarithm[w] + i * from_end) % 255];
		}
		EXPECT_EQ(sum, 0);
	}
}

/* The half byte at `i` half bytes of the data. */
static u8 half(size_t i)
{
	const u8 byte = word((unsigned)(i / 2 / QR_BLOCK_DATA), i / 2 % QR_BLOCK_DATA);

	return i % 2 ? byte & 15 : byte >> 4;
}

static void expect_bytes(const u8 *bytes, size_t len)
{
	EXPECT_EQ(half(0), 4);
	EXPECT_EQ(half(1) << 12 | half(2) << 8 | half(3) << 4 | half(4), len);
	for (size_t i = 0; i < len; i++)
		EXPECT_EQ(half(5 + 2 * i) << 4 | half(6 + 2 * i), bytes[i]);
	EXPECT_EQ(half(5 + 2 * len), 0);
	for (size_t i = len + 3; i < QR_BLOCKS * QR_BLOCK_DATA; i++)
		EXPECT_EQ(half(2 * i) << 4 | half(2 * i + 1), (i - len) % 2 ? 0xec : 0x11);
}

/* The remainder of a division of polynomials over GF(2). */
static u32 rest_of(u32 bits, u32 divisor)
{
	const int degree = 31 - __builtin_clz(divisor);

	for (int i = 31; i >= degree; i--)
		bits ^= bits >> i & 1 ? divisor << (i - degree) : 0;
	return bits;
}

/* Level, mask and version stand twice in the code, each with check bits of its own. */
static void expect_words(void)
{
	u32 format[2] = {0}, version[2] = {0};

	for (unsigned i = 0; i < 8; i++) {
		format[0] |= (u32)qr.module[8][LAST - i] << i;
		format[1] |= (u32)qr.module[i < 6 ? i : i + 1][8] << i;
	}
	for (unsigned i = 8; i < 15; i++) {
		format[0] |= (u32)qr.module[LAST - 14 + i][8] << i;
		format[1] |= (u32)qr.module[8][i == 8 ? 7 : 14 - i] << i;
	}
	for (unsigned i = 0; i < 18; i++) {
		version[0] |= (u32)qr.module[i / 3][LAST - 10 + i % 3] << i;
		version[1] |= (u32)qr.module[LAST - 10 + i % 3][i / 3] << i;
	}
	EXPECT_EQ(format[0], format[1]);
	EXPECT_EQ((format[0] ^ 0x5412) >> 10, 1 << 3 | 0); /* L, mask 0 */
	EXPECT_EQ(rest_of(format[0] ^ 0x5412, 0x537), 0);
	EXPECT_EQ(version[0], version[1]);
	EXPECT_EQ(version[0] >> 12, QR_VERSION);
	EXPECT_EQ(rest_of(version[0], 0x1f25), 0);
	EXPECT_EQ(qr.module[LAST - 7][8], 1);
}

TEST(kernel_qr, a_reader_finds_the_bytes_and_nothing_to_correct)
{
	static const size_t sizes[] = {0, 1, 2, 100, QR_BYTES - 1, QR_BYTES};
	static u8 bytes[QR_BYTES];
	u64 random = 13;
	unsigned x = 1;

	for (unsigned i = 0; i < 255; i++) {
		power[i] = (u8)x;
		logarithm[x] = (u8)i;
		x = x << 1 ^ (x & 0x80 ? 0x11d : 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		for (size_t j = 0; j < sizes[i]; j++)
			bytes[j] = (u8)next_random(&random);
		memset(&qr, 0xaa, sizeof(qr));
		REQUIRE(qr_encode(bytes, sizes[i], &qr));
		read_words();
		for (unsigned block = 0; block < QR_BLOCKS; block++)
			expect_no_misreading(block);
		expect_bytes(bytes, sizes[i]);
		expect_words();
	}
	EXPECT(!qr_encode(bytes, QR_BYTES + 1, &qr));
}
