/*
 * A text screen: text is written into a grid of characters that scrolls, and a driver shows the
 * grid.
 *
 *   write -> want[][]  --differs from-->  have[][]  -> draw(row, first, last)
 *
 * Both grids are in RAM: a framebuffer is never read, which would be far too slow, and characters
 * that stay the same are not drawn again. When the last row is full, the text moves up by an eighth
 * of the screen at once. Moving is most of the cost of scrolling, and this way it is paid once for
 * several lines.
 *
 * Besides printable ASCII, the screen understands \n \r \t \b, "ESC [ K" and "ESC [ J" (erase to
 * the end of line, of screen) and "ESC [ H" (home). Other escape sequences are skipped. Any other
 * byte is shown as '?'.
 */
#pragma once

#include "kernel/console/console.h"
#include "kernel/lib/types.h"

/* Limits; larger screens are used only up to these. */
enum { SCREEN_COLUMNS_MAX = 256, SCREEN_ROWS_MAX = 128 };

struct screen {
	struct console console;
	/* Show columns first..last of a row, which are text[first..last]. */
	void (*draw)(struct screen *screen, unsigned row, unsigned first, unsigned last,
		     const char *text);
	unsigned columns, rows;
	unsigned x, y; /* where the next character goes; x == columns: on the next row */
	unsigned dirty_first, dirty_end; /* rows that may differ from the device */
	enum { SCREEN_TEXT, SCREEN_ESCAPE, SCREEN_SEQUENCE } state;
	unsigned parameter; /* of the escape sequence */
	char want[SCREEN_ROWS_MAX][SCREEN_COLUMNS_MAX], have[SCREEN_ROWS_MAX][SCREEN_COLUMNS_MAX];
};

/*
 * Begin with an empty screen of this size, cut to the limits. The device must already show blanks.
 */
void screen_start(struct screen *screen, unsigned columns, unsigned rows);

/* The device shows blanks again. The next write draws all text that the screen should have. */
void screen_forget(struct screen *screen);
