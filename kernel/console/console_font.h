/*
 * Bitmap fonts in the format of the Linux console: PC Screen Font, versions 1 and 2 (Cox,
 * Gulbrandsen, Kroonmaa, "PSF", as documented with kbd: "The Linux console font format", 2004).
 */
#pragma once

#include "kernel/lib/types.h"

enum { FONT_CHARS = 128 };

struct font {
	const u8 *glyphs;
	unsigned width, height; /* pixels */
	/* bytes of one row of a glyph; the leftmost pixel is the highest bit of the first byte */
	unsigned row_bytes;
	u16 glyph[FONT_CHARS]; /* of each ASCII character; 0xffff: the font has none */
};

/*
 * Parse a font of `len` bytes and take its ASCII part; `font` then points into the data. Returns 0,
 * or -EINVAL if the data is not a font, is shorter than it claims, or has glyphs larger than 64 x
 * 128.
 */
int font_open(const void *data, size_t len, struct font *font);

/* Row `y` of a character, or NULL if it is blank or unknown. */
const u8 *font_row(const struct font *font, char c, unsigned y);

/* The fonts that come with the kernel; NULL if there are none (hosted builds without them). */
extern const u8 font_small_start[], font_small_end[], font_large_start[], font_large_end[];
