/*
 * Line editing, one byte in at a time. Pure: keys in, an edited line and what to send to the terminal out.
 *
 *   text    [p o o l   2 M _ 4 0 9 6 . . . . ]      cursor at _: typing inserts there
 *
 * Made for a 115200 baud line: a key at the end of the line sends one byte back; in the middle, the rest of the line and as
 * many backspaces; nothing is ever painted again. Any terminal that knows backspace will do. Keys: arrows, Home, End,
 * Delete as VT100, xterm and the Linux console send them, and the usual control keys (^A ^E ^B ^F ^K ^U ^W ^P ^N ^C ^D).
 */
#pragma once

#include "kernel/keys.h"
#include "kernel/types.h"

enum { LINE_SIZE = 240, LINE_HISTORY = 16 };

struct line {
	char text[LINE_SIZE + 1]; /* terminated */
	size_t len, cursor;
	void (*emit)(void *ctx, const char *text, size_t len); /* to the terminal */
	void *ctx;

	char history[LINE_HISTORY][LINE_SIZE + 1];
	unsigned entered; /* lines so far: the newest is history[(entered - 1) % LINE_HISTORY] */
	unsigned back;    /* how far back the shown line lies; 0: the one being typed */
	char draft[LINE_SIZE + 1];

	struct keys keys;
	bool after_cr; /* a line feed now belongs to the carriage return before it */
};

enum line_event {
	LINE_MORE,      /* nothing to do */
	LINE_READY,     /* text is a finished line; line_begin() before the next key */
	LINE_CANCELLED, /* ^C: forget it; likewise */
	LINE_TAB,       /* completion is wanted at the cursor: line_insert() what is found */
	LINE_END,       /* ^D on an empty line */
};

void line_init(struct line *line, void (*emit)(void *ctx, const char *text, size_t len), void *ctx);

/* Empty line; history stays. */
void line_begin(struct line *line);

enum line_event line_key(struct line *line, u8 byte);

/* Insert at the cursor as if typed; what does not fit is not inserted, and false is returned. */
bool line_insert(struct line *line, const char *text, size_t len);

/* Send the line again, after something else was printed: the caller has printed the prompt. */
void line_show(struct line *line);
