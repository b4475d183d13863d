/*
 * Consoles: where the log goes, and where people type.
 *
 *   print() -> RAM log -> console_write() -> every console of the list: UARTs, a screen
 *   console_read() <- the first console that has a byte
 *
 * The architecture registers the consoles of the machine, in the order in which it finds them; none
 * is fine. A console that stops taking bytes is dropped for good, so a dead UART costs its time
 * limit once and nothing afterwards.
 */
#pragma once

#include "kernel/lib/qr.h"
#include "kernel/lib/types.h"

struct console {
	const char *name; /* its name in console= */
	/*
	 * Write all of the text, or return false if the device stopped taking bytes. NULL: no
	 * output.
	 */
	bool (*write)(struct console *console, const char *text, size_t len);
	int (*read)(struct console *console); /* next byte or -1; NULL: no input */
	/* Show only this code, or for NULL an empty screen again. NULL: the console cannot. */
	void (*show)(struct console *console, const struct qr *qr);
	bool dead;
	unsigned columns, rows; /* of a screen; 0: unknown, depends on the other end of the line */
	struct console *next;
};

/* The machine's list, used by console_write() and console_read(). */
extern struct console *consoles;

/*
 * Write to every console that works. The time is bounded. Any context; callers serialise
 * (kernel/core/printk.c).
 */
void console_write(const char *text, size_t len);

/* Next byte typed, or -1 if there is none. Never blocks. One caller at a time. */
int console_read(void);

/* Columns and rows that fit every console; 80 and 24 if no console knows its size. */
void console_size(unsigned *columns, unsigned *rows);

/*
 * For the end of a run. console_screens_only(): only screens get output from now on, so that the
 * last line of a serial port stays the last. Returns false, and changes nothing, if there is no
 * screen. console_show(): show `qr` on each screen that can, or text again for NULL. Returns how
 * many can.
 */
bool console_screens_only(void);
unsigned console_show(const struct qr *qr);

/*
 * Add a console to the machine's list; it first prints the log so far. Boot CPU, during start-up.
 */
void console_register(struct console *console);

/*
 * Write to and read from any list of consoles, for tests. console_list_write() returns how many
 * consoles it dropped.
 */
unsigned console_list_write(struct console *first, const char *text, size_t len);
int console_list_read(struct console *first);

/*
 * Consoles that console= asks for: a list of words, each with its parameters after colons.
 *
 *   auto                  what answers: COM ports, SPCR's, else a PCI UART; screen, keyboard
 *   none                  nothing; the log stays in RAM
 *   com1..com4[:BAUD]     a PC's serial ports
 *   port:ADDR[:BAUD]      a 16550 at an I/O port
 *   mmio:ADDR[:STRIDE[:BAUD]]
 *                         a 16550 in memory, one register every STRIDE bytes
 *   spcr  pci             the UART that ACPI's SPCR names; the first one on the PCI bus
 *   screen                framebuffer or VGA text, whichever there is
 *   kbd                   a PS/2 keyboard, or a USB one that firmware presents as PS/2
 */
enum console_kind {
	CON_AUTO,
	CON_NONE,
	CON_PORT,
	CON_SCREEN,
	CON_KEYBOARD,
	/* once firmware's tables are read and mappings can be made */
	CON_MMIO,
	CON_SPCR,
	CON_PCI
};

struct console_wish {
	enum console_kind kind;
	const char *name; /* of its console */
	u64 addr;         /* CON_PORT, CON_MMIO */
	unsigned stride;  /* CON_MMIO: 1, 2 or 4 */
	u32 baud;         /* 0: 115200, or the speed that firmware set */
	bool automatic;   /* a part of auto: it may be missing */
};

enum { CONSOLE_WISHES_MAX = 8 };
