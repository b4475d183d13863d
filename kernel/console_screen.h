/*
 * A text screen: what is written scrolls past in a grid of characters, and a driver shows it.
 *
 *   write -> want[][]  --differs from-->  have[][]  -> draw(row, first, last)
 *
 * Both grids are in RAM: a framebuffer is never read, which would be slow beyond use, and characters that stay the same
 * are not drawn again. When the last row is full the text moves up by an eighth of the screen at once: most of the cost
 * of scrolling is moving, and it is paid once for several lines.
 *
 * Understood besides printable ASCII: \n \r \t \b, "ESC [ K" and "ESC [ J" (erase to the end of line, of screen) and
 * "ESC [ H" (home); other escape sequences are swallowed. Anything else is shown as '?'.
 */
#pragma once

#include "kernel/console.h"
#include "kernel/console_font.h"
#include "kernel/types.h"

/* Larger screens are used up to here. */
enum { SCREEN_COLUMNS_MAX = 256, SCREEN_ROWS_MAX = 128 };

struct screen {
	struct console console;
	/* Show columns first..last of a row, which are text[first..last]. */
	void (*draw)(struct screen *screen, unsigned row, unsigned first, unsigned last, const char *text);
	unsigned columns, rows;
	unsigned x, y; /* where the next character goes; x == columns: on the next row */
	unsigned dirty_first, dirty_end; /* rows that may differ from what is shown */
	enum { SCREEN_TEXT, SCREEN_ESCAPE, SCREEN_SEQUENCE } state;
	unsigned parameter; /* of the escape sequence */
	char want[SCREEN_ROWS_MAX][SCREEN_COLUMNS_MAX], have[SCREEN_ROWS_MAX][SCREEN_COLUMNS_MAX];
};

/* Begin with an empty screen of this size (cut to the limits). The device shows blanks already. */
void screen_start(struct screen *screen, unsigned columns, unsigned rows);

/* ---- on a framebuffer: console_fb.c ----------------------------------------------------------------------------- */

/* Pixels of 2, 3 or 4 bytes; only ever written. */
struct surface {
	u8 *pixels;
	u32 pitch, width, height; /* bytes from row to row; pixels */
	unsigned bytes;           /* of a pixel */
	u32 ink, paper;           /* colours, as the pixels have them */
};

struct fb_screen {
	struct screen screen;
	struct surface surface;
	struct font font;
};

struct boot_framebuffer;

/* Bytes from the first to behind the last pixel; 0 if this is no framebuffer we can draw on. */
u64 fb_size(const struct boot_framebuffer *fb);

/* Take `pixels` as the framebuffer described, choose the font that suits it, start the screen. False: none fits. */
bool fb_start(struct fb_screen *fb, const struct boot_framebuffer *boot, void *pixels);
