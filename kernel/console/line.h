/*
 * Line editing, one byte of input at a time. Pure: keys in; out come an edited line and the bytes
 * to send to the terminal.
 *
 *   text    [p o o l   2 M _ 4 0 9 6 . . . . ]      cursor at _: typing inserts there
 *
 * Made for a 115200 baud line. A key at the end of the line sends one byte back; a key in the
 * middle sends the rest of the line and as many backspaces. Nothing is ever painted again, and any
 * terminal that knows backspace will do. Keys: arrows, Home, End, Delete as VT100, xterm and the
 * Linux console send them, and the usual control keys (^A ^E ^B ^F ^K ^U ^W ^P ^N ^C ^D).
 */
#pragma once

#include "kernel/console/keys.h"
#include "kernel/lib/types.h"

enum { LINE_SIZE = 240, LINE_HISTORY = 16 };

struct line {
	char text[LINE_SIZE + 1]; /* terminated */
	size_t len, cursor;
	void (*emit)(const char *text, size_t len); /* to the terminal */

	char history[LINE_HISTORY][LINE_SIZE + 1];
	unsigned entered; /* lines so far: the newest is history[(entered - 1) % LINE_HISTORY] */
	unsigned back;    /* how many lines back the shown line is; 0: the line being typed */
	char draft[LINE_SIZE + 1];

	struct keys keys;
	bool after_cr; /* the last key was a carriage return: a line feed now belongs to it */
};

enum line_event {
	LINE_MORE,      /* nothing to do for the caller */
	LINE_READY,     /* text is a finished line; call line_begin() before the next key */
	LINE_CANCELLED, /* ^C: drop the line; call line_begin() likewise */
	LINE_TAB,       /* completion is wanted at the cursor: the caller inserts the rest */
	LINE_END,       /* ^D on an empty line */
};

void line_init(struct line *line, void (*emit)(const char *text, size_t len));

/* Start an empty line; the history stays. */
void line_begin(struct line *line);

enum line_event line_key(struct line *line, u8 byte);

/*
 * Insert at the cursor, as if typed. Text that does not fit is not inserted, and false is returned.
 */
bool line_insert(struct line *line, const char *text, size_t len);

/* Send the line again after other output. The caller has printed the prompt. */
void line_show(struct line *line);
