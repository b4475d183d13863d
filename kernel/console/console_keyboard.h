/*
 * A PC keyboard's scan codes (set 1) as the bytes a terminal would send, US layout.
 *
 * Source: IBM, "PS/2 Hardware Interface Technical Reference", 1990, keyboard; ECMA-48, 1991, for
 * the cursor keys.
 */
#pragma once

#include "kernel/lib/types.h"

struct keyboard {
	bool shift, control, caps, extended;
};

enum { KEY_BYTES_MAX = 4 };

/*
 * Take one scan code. Returns the number of bytes stored in `out`: 0 for most codes (releases,
 * shift, unknown keys).
 */
unsigned keyboard_decode(struct keyboard *keyboard, u8 code, char out[KEY_BYTES_MAX]);
