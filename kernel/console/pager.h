/*
 * The log on the screen, page by page, after the run: with end=page and end=cycle, and with
 * end=auto on hardware.
 *
 *   first row     [    0.012345] clock: ...            Space b    a page forward, back
 *   ...                                                Enter k    a line forward, back; also the
 *                                                                 cursor keys
 *   last row      -- 1 to 24 of 311 --                 g G q      begin, end, leave
 *
 * Nothing is shown until a key is typed, so the verdict stays the last line for a user who only
 * looks. With end=cycle the screen moves on by itself every few seconds: last page, results as QR
 * codes (results.h), all pages from the first. Rows are those of the screen: a long line takes
 * several.
 */
#pragma once

#include "kernel/lib/types.h"

struct pager {
	unsigned columns, rows; /* of the screen; the last row is the pager's own */
	u64 top, at;            /* row of the log at the top of the screen, its place in the log */
	u64 last, total;        /* row at the top of the last page; all rows */
	unsigned code, codes;   /* number of the QR code on show, 0: text; how many there are */
};

/* Start at the end of the log, on a screen of this size (cut to sensible sizes). */
struct pager pager_begin(unsigned columns, unsigned rows);

/* Handle a key (keys.h). False if the user leaves. */
bool pager_key(struct pager *pager, int key);

/* Go on to what comes next when no key is typed. */
void pager_step(struct pager *pager);

/*
 * Paint the page, in a few pieces of text, for a terminal that knows "ESC [ H", "ESC [ K" and
 * "ESC [ J".
 */
void pager_paint(const struct pager *pager, void (*out)(const char *text, size_t len));

/*
 * Let the user page until they leave; `cycle`: move on by itself, too, if there is a screen. Any
 * context; other CPUs need not run. Polls the consoles' keys.
 */
void pager_run(bool cycle);
