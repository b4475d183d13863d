/*
 * Bitmap fonts in the format of the Linux console: PC Screen Font, versions 1 and 2 (Cox, Gulbrandsen, Kroonmaa, "PSF",
 * as documented with kbd: "The Linux console font format", 2004).
 */
#pragma once

#include "kernel/types.h"

enum { FONT_CHARS = 128 };

struct font {
	const u8 *glyphs;
	unsigned width, height;     /* pixels */
	unsigned row_bytes;         /* of one row of a glyph; the leftmost pixel is the highest bit of the first byte */
	u16 glyph[FONT_CHARS];      /* of each ASCII character; 0xffff: the font has none */
};

/*
 * Look at a font of `len` bytes and take its ASCII part; `font` then points into it. 0, or -EINVAL if it is none, lies
 * about its size, or its glyphs are larger than 64 x 128.
 */
int font_open(const void *data, size_t len, struct font *font);

/* Row `y` of a character, or NULL if it is blank or unknown. */
const u8 *font_row(const struct font *font, char c, unsigned y);

/* The fonts that come with the kernel; NULL where there are none (hosted builds without them). */
extern const u8 font_small_start[], font_small_end[], font_large_start[], font_large_end[];
