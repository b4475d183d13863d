/*
 * QR codes: see qr.h.
 *
 *   #######. ... .#######     corners: finder patterns     row and column 6: timing patterns
 *   #     #.     .#     #
 *   # ### #. [version]        beside the finders: format (level and mask), version
 *   ...
 *                 #####       inside: alignment patterns every 28 modules
 *   #######.      # # #       all else: the bits, in columns two modules wide, from the right,
 *   #     #.      #####       upwards and downwards in turn
 *
 * The bytes are cut into blocks, and each gets the remainder of a division of polynomials over
 * GF(256), from which readers correct what they misread (Reed-Solomon). Blocks are interleaved.
 */
#include "kernel/lib/qr.h"

#include "kernel/lib/string.h"

enum {
	FIELD = 0x11d,         /* x^8 + x^4 + x^3 + x^2 + 1 */
	BYTE_MODE = 0x4,       /* 4 bits; 16 bits of length follow */
	FORMAT = 0x77c4,       /* level L, mask 0, with its check bits and mask: table C.1 */
	VERSION_BITS = 0xd847, /* 13, with its check bits: table D.1 */
	FIXED = 2,             /* of a module, while the code is made: carries no data */
	TIMING = 6
};

static u8 multiply(u8 a, u8 b)
{
	unsigned product = 0;

	for (unsigned bit = 8; bit-- > 0;) {
		product = product << 1 ^ (product & 0x80 ? FIELD : 0);
		product ^= b >> bit & 1 ? a : 0;
	}
	return (u8)product;
}

/* The product of (x - 2^i) for i < QR_BLOCK_CHECK, without its leading 1, highest power first. */
static void make_generator(u8 *out)
{
	u8 root = 1;

	memset(out, 0, QR_BLOCK_CHECK);
	out[QR_BLOCK_CHECK - 1] = 1;
	for (unsigned i = 0; i < QR_BLOCK_CHECK; i++) {
		for (unsigned j = 0; j < QR_BLOCK_CHECK; j++)
			out[j] = multiply(out[j], root) ^ (j + 1 < QR_BLOCK_CHECK ? out[j + 1] : 0);
		root = multiply(root, 2);
	}
}

static void make_check(const u8 *data, const u8 *generator, u8 *check)
{
	memset(check, 0, QR_BLOCK_CHECK);
	for (unsigned i = 0; i < QR_BLOCK_DATA; i++) {
		const u8 factor = data[i] ^ check[0];

		memmove(check, check + 1, QR_BLOCK_CHECK - 1);
		check[QR_BLOCK_CHECK - 1] = 0;
		for (unsigned j = 0; j < QR_BLOCK_CHECK; j++)
			check[j] ^= multiply(generator[j], factor);
	}
}

/* Mode, length, bytes, end, and padding. All but the padding is shifted by half a byte. */
static void make_data(const u8 *bytes, size_t len, u8 *data)
{
	data[0] = (u8)(BYTE_MODE << 4 | len >> 12);
	data[1] = (u8)(len >> 4);
	data[2] = (u8)(len << 4);
	for (size_t i = 0; i < len; i++) {
		data[i + 2] |= bytes[i] >> 4;
		data[i + 3] = (u8)(bytes[i] << 4);
	}
	for (size_t i = len + 3; i < QR_BLOCKS * QR_BLOCK_DATA; i++)
		data[i] = (i - len) % 2 ? 0xec : 0x11;
}

/* A square of rings around a centre, dark and light in turn from the outside; cut at the edge. */
static void put_rings(struct qr *qr, int row, int column, int radius, int light)
{
	for (int y = -radius; y <= radius; y++) {
		for (int x = -radius; x <= radius; x++) {
			const int ring = MAX(MAX(x, -x), MAX(y, -y));

			if (row + y < 0 || row + y >= QR_SIDE || column + x < 0 ||
			    column + x >= QR_SIDE)
				continue;
			qr->module[row + y][column + x] = FIXED | (ring != light && ring != 4);
		}
	}
}

static void put_patterns(struct qr *qr)
{
	const int last = QR_SIDE - 1, middle = last / 2;

	for (int i = 0; i <= last; i++)
		qr->module[TIMING][i] = qr->module[i][TIMING] = FIXED | (i % 2 == 0);
	for (int y = TIMING; y < QR_SIDE; y += middle - TIMING) {
		for (int x = TIMING; x < QR_SIDE; x += middle - TIMING) {
			if (x == middle || y == middle || x + y > 3 * middle)
				put_rings(qr, y, x, 2, 1);
		}
	}
	/* in three corners; the separator of a finder is its fourth ring */
	put_rings(qr, 3, 3, 4, 2);
	put_rings(qr, 3, last - 3, 4, 2);
	put_rings(qr, last - 3, 3, 4, 2);
}

/* Format and version, twice each, so that one hidden corner does no harm. */
static void put_words(struct qr *qr)
{
	const int last = QR_SIDE - 1;

	for (int i = 0; i < 15; i++) {
		const u8 bit = FIXED | (FORMAT >> i & 1);

		qr->module[i < 6 ? i : i < 8 ? i + 1 : last - 14 + i][8] = bit;
		qr->module[8][i < 8 ? last - i : i < 9 ? 7 : 14 - i] = bit;
	}
	qr->module[last - 7][8] = FIXED | 1;
	for (int i = 0; i < 18; i++)
		qr->module[i / 3][last - 10 + i % 3] = qr->module[last - 10 + i % 3][i / 3] =
			FIXED | (VERSION_BITS >> i & 1);
}

/* The next module for data: columns in pairs, from the right; the timing column is in no pair. */
struct place {
	int row, right, step;
	bool left;
};

static u8 *next_module(struct qr *qr, struct place *p)
{
	u8 *module;

	do {
		module = &qr->module[p->row][p->right - p->left];
		if (p->left && (p->row + p->step < 0 || p->row + p->step == QR_SIDE)) {
			p->step = -p->step;
			p->right -= p->right - 2 == TIMING ? 3 : 2;
		} else if (p->left) {
			p->row += p->step;
		}
		p->left = !p->left;
	} while (*module & FIXED);
	return module;
}

static void put_byte(struct qr *qr, struct place *place, u8 byte)
{
	for (unsigned bit = 8; bit-- > 0;)
		*next_module(qr, place) = byte >> bit & 1;
}

bool qr_encode(const void *bytes, size_t len, struct qr *qr)
{
	u8 data[QR_BLOCKS * QR_BLOCK_DATA], check[QR_BLOCKS][QR_BLOCK_CHECK];
	u8 generator[QR_BLOCK_CHECK];
	struct place place = {.row = QR_SIDE - 1, .right = QR_SIDE - 1, .step = -1};

	if (len > QR_BYTES)
		return false;
	make_data(bytes, len, data);
	make_generator(generator);
	for (unsigned b = 0; b < QR_BLOCKS; b++)
		make_check(data + b * QR_BLOCK_DATA, generator, check[b]);
	memset(qr, 0, sizeof(*qr));
	put_patterns(qr);
	put_words(qr);
	for (unsigned i = 0; i < QR_BLOCKS * QR_BLOCK_DATA; i++)
		put_byte(qr, &place, data[i % QR_BLOCKS * QR_BLOCK_DATA + i / QR_BLOCKS]);
	for (unsigned i = 0; i < QR_BLOCKS * QR_BLOCK_CHECK; i++)
		put_byte(qr, &place, check[i % QR_BLOCKS][i / QR_BLOCKS]);
	/* mask 0: a chequered pattern over the data */
	for (unsigned row = 0; row < QR_SIDE; row++) {
		for (unsigned column = 0; column < QR_SIDE; column++) {
			u8 *module = &qr->module[row][column];

			*module = (*module & 1) ^ (!(*module & FIXED) && (row + column) % 2 == 0);
		}
	}
	return true;
}
