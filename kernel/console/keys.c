/* Keys: see keys.h. */
#include "kernel/console/keys.h"

#include "kernel/lib/string.h"

enum { ESC = 0x1b, PARAM_MAX = 1000 };
enum { STATE_TEXT, STATE_ESC, STATE_CSI, STATE_SS3 };

/* ESC [ number ~ */
static const u16 numbered[] = {
	[1] = KEY_HOME,      [3] = KEY_DELETE, [4] = KEY_END, [5] = KEY_PAGE_UP,
	[6] = KEY_PAGE_DOWN, [7] = KEY_HOME,   [8] = KEY_END};

/* The key of a sequence that ends in this byte. */
static int final_byte(const struct keys *keys, u8 byte)
{
	static const char letters[] = "ABCDHF"; /* from KEY_UP on */
	const char *at = strchr(letters, byte);

	if (byte == '~' && keys->param < ARRAY_LEN(numbered) && numbered[keys->param])
		return numbered[keys->param];
	return at ? KEY_UP + (int)(at - letters) : KEY_NONE;
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
