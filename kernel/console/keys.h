/*
 * Keys from the bytes that a terminal sends: most keys are one byte, cursor keys are sequences.
 * Pure.
 *
 * Source: ECMA-48, 1991, 5.4 "Control sequences" (ESC [ parameters final byte); final bytes as
 * VT100, xterm and the Linux console have them.
 */
#pragma once

#include "kernel/lib/types.h"

struct keys {
	u8 state;       /* inside an escape sequence */
	unsigned param; /* the sequence's number so far */
};

enum { BYTE_DEL = 0x7f }; /* what the backspace key of many terminals sends */

/* Keys beyond single bytes, which stand for themselves. */
enum key {
	KEY_NONE = -1, /* a sequence is not complete, or has no meaning here */
	KEY_UP = 0x100,
	KEY_DOWN,
	KEY_RIGHT,
	KEY_LEFT,
	KEY_HOME,
	KEY_END,
	KEY_DELETE,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
};

/* Take one byte. Returns a byte, or an enum key. */
int keys_feed(struct keys *keys, u8 byte);
