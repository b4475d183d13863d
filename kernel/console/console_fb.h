/* A framebuffer as a screen of text. */
#pragma once

#include "boot/boot_info.h"
#include "kernel/console/console_screen.h"

/*
 * ---- fonts ----
 *
 * The bitmap fonts that come with the kernel: the glyphs of PSF files (Cox, Gulbrandsen, Kroonmaa,
 * "PSF", as documented with kbd: "The Linux console font format", 2004), whose first 128 glyphs are
 * ASCII in its order.
 */
struct font {
	const u8 *glyphs;
	unsigned width, height; /* pixels */
	/* bytes of one row of a glyph; the leftmost pixel is the highest bit of the first byte */
	unsigned row_bytes;
};

/* The files: PSF 1 with a header of 4 bytes, PSF 2 with one of 32. */
extern const u8 font_small_start[], font_large_start[];
enum { PSF1_HEADER = 4, PSF2_HEADER = 32 };

/* Row `y` of a character, or NULL if it is blank or not ASCII. */
static inline const u8 *font_row(const struct font *font, char c, unsigned y)
{
	if (c <= ' ' || c >= 0x7f)
		return NULL;
	return font->glyphs + ((size_t)c * font->height + y) * font->row_bytes;
}

/* ---- the screen ---- */

struct fb_screen {
	struct screen screen;
	struct boot_framebuffer mode;
	u8 *pixels;
	const struct font *font;
};

/* Bytes from the first pixel to the end of the last; 0 if the framebuffer cannot be drawn on. */
u64 fb_size(const struct boot_framebuffer *fb);

/*
 * Take `pixels` as the framebuffer that `boot` describes, choose the font that suits it, and start
 * the screen. False if no font fits.
 */
bool fb_start(struct fb_screen *fb, const struct boot_framebuffer *boot, void *pixels);
