/* Keys: see keys.h. */
#include "kernel/console/keys.h"

enum { ESC = 0x1b, PARAM_MAX = 1000 };
enum { STATE_TEXT, STATE_ESC, STATE_CSI, STATE_SS3 };

/* ESC [ number ~ */
static int numbered(unsigned number)
{
	switch (number) {
	case 1:
	case 7:
		return KEY_HOME;
	case 4:
	case 8:
		return KEY_END;
	case 3:
		return KEY_DELETE;
	case 5:
		return KEY_PAGE_UP;
	case 6:
		return KEY_PAGE_DOWN;
	}
	return KEY_NONE;
}

/* The key of a sequence that ends in this byte. */
static int final_byte(const struct keys *keys, u8 byte)
{
	switch (byte) {
	case '~':
		return numbered(keys->param);
	case 'A':
		return KEY_UP;
	case 'B':
		return KEY_DOWN;
	case 'C':
		return KEY_RIGHT;
	case 'D':
		return KEY_LEFT;
	case 'H':
		return KEY_HOME;
	case 'F':
		return KEY_END;
	}
	return KEY_NONE;
}

int keys_feed(struct keys *keys, u8 byte)
{
	/* a control byte is part of no sequence: it ends one that has begun */
	if (byte < ' ' || byte >= BYTE_DEL) {
		keys->state = byte == ESC ? STATE_ESC : STATE_TEXT;
		return byte == ESC ? KEY_NONE : byte;
	}
	if (keys->state == STATE_TEXT)
		return byte;
	if (keys->state == STATE_ESC) {
		keys->state = byte == '[' ? STATE_CSI : byte == 'O' ? STATE_SS3 : STATE_TEXT;
		keys->param = 0;
	} else if (keys->state == STATE_CSI && byte >= '0' && byte <= '9') {
		keys->param = MIN(keys->param * 10 + (byte - '0'), (unsigned)PARAM_MAX);
	} else if (keys->state == STATE_SS3 || byte >= '@') {
		keys->state = STATE_TEXT;
		return final_byte(keys, byte);
	}
	return KEY_NONE;
}
