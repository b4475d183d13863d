/*
 * QR codes: bytes as a picture that a telephone reads. One version, 13 (69 modules a side), one
 * level of error correction, L, and one mask. All bytes are allowed (byte mode).
 *
 * Source: ISO/IEC 18004:2015, "QR Code bar code symbology specification".
 */
#pragma once

#include "kernel/lib/types.h"

enum {
	QR_VERSION = 13,
	QR_SIDE = 17 + 4 * QR_VERSION, /* modules */
	QR_QUIET = 4,                  /* modules of margin that readers want on each side */
	QR_BLOCKS = 4,
	QR_BLOCK_DATA = 107, /* bytes of a block, and those that correct errors in it */
	QR_BLOCK_CHECK = 26,
	QR_BYTES = QR_BLOCKS * QR_BLOCK_DATA - 3 /* that a code can hold */
};

struct qr {
	u8 module[QR_SIDE][QR_SIDE]; /* 1: dark; by row and column */
};

/* Make the code of `len` bytes. False if they are more than QR_BYTES. Pure. */
bool qr_encode(const void *bytes, size_t len, struct qr *qr);
