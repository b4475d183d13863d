/*
 * The keyboard controller, polled. The keyboard is a PS/2 one, or a USB one that firmware presents
 * as PS/2 until an operating system takes over the bus, which this kernel never does. Firmware has
 * set the controller up, including translation to set 1. The code here only reads and changes none
 * of that.
 *
 * Source: Intel, "8042 Universal Peripheral Interface" as used in the IBM PC/AT, "Technical
 * Reference", 1984.
 */
#include "arch/x86_64/consoles/keyboard.h"
#include "arch/x86_64/cpu/io.h"
#include "kernel/console/console.h"
#include "kernel/console/console_keyboard.h"

enum {
	PORT_DATA = 0x60,
	PORT_STATUS = 0x64,
	STATUS_FULL = 1 << 0,
	STATUS_MOUSE = 1 << 5,
	STATUS_ABSENT = 0xff
};
enum { CODES_AT_ONCE = 16 };

static struct keyboard state;
static char typed[KEY_BYTES_MAX];
static unsigned typed_next, typed_end;

static int keyboard_read(struct console *console)
{
	for (unsigned i = 0; i < CODES_AT_ONCE && typed_next == typed_end; i++) {
		const u8 status = inb(PORT_STATUS);
		u8 code;

		if (status == STATUS_ABSENT || !(status & STATUS_FULL))
			return -1;
		code = inb(PORT_DATA);
		typed_next = 0;
		typed_end = status & STATUS_MOUSE ? 0 : keyboard_decode(&state, code, typed);
	}
	return typed_next < typed_end ? (u8)typed[typed_next++] : -1;
}

static struct console keyboard = {.name = "kbd", .read = keyboard_read};

bool keyboard_start(void)
{
	if (inb(PORT_STATUS) == STATUS_ABSENT)
		return false;
	console_register(&keyboard);
	return true;
}
