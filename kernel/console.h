/*
 * Consoles: where the log goes, and where people type.
 *
 *   print() -> RAM log -> console_write() -> every console of the list: UARTs, a screen
 *   console_read() <- the first console that has a byte
 *
 * The architecture registers what the machine has, in whatever order it finds it; none at all is fine. A console that
 * stops taking bytes is dropped for good: a dead UART costs its bound once and nothing afterwards.
 */
#pragma once

#include "kernel/types.h"

struct console {
	const char *name; /* as console= has it */
	/* Write everything, or return false if the device stopped taking bytes. NULL: it has no output. */
	bool (*write)(struct console *console, const char *text, size_t len);
	int (*read)(struct console *console); /* next byte or -1; NULL: it has no input */
	bool dead;
	unsigned columns, rows; /* of a screen; 0: whatever is at the other end */
	struct console *next;
};

struct console_list {
	struct console *first;
};

/* The machine's; console_write() and console_read() mean it. */
extern struct console_list consoles;

/* Write to every console that works. Bounded. Any context; callers serialise (kernel/printk.c). */
void console_write(const char *text, size_t len);

/* Next byte that somebody typed, or -1 if none waits. Never blocks. One caller at a time. */
int console_read(void);

/* Columns and rows that every console shows; 80 and 24 where none says. */
void console_size(unsigned *columns, unsigned *rows);

/* Add a console to the machine's; it first prints the log so far. Boot CPU, during start-up. */
void console_register(struct console *console);

/* The same for any list: for tests. console_list_write() returns how many consoles it dropped. */
unsigned console_list_write(struct console_list *list, const char *text, size_t len);
int console_list_read(struct console_list *list);

/*
 * What console= asks for. A list of words, each with what follows it after colons:
 *
 *   auto                  what answers: a COM port, SPCR's, else a PCI UART; and the screen
 *   none                  nothing; the log stays in RAM
 *   com1..com4[:BAUD]     a PC's serial ports
 *   port:ADDR[:BAUD]      a 16550 at an I/O port        mmio:ADDR[:STRIDE[:BAUD]]   or in memory, a register each STRIDE bytes
 *   spcr  pci             the UART that ACPI's SPCR names; the first one on the PCI bus
 *   screen                framebuffer or VGA text, whichever there is
 *   kbd                   a PS/2 keyboard, or a USB one that firmware disguises as such
 */
enum console_kind { CON_AUTO, CON_NONE, CON_COM, CON_PORT, CON_MMIO, CON_SPCR, CON_PCI, CON_SCREEN, CON_KEYBOARD };

struct console_wish {
	enum console_kind kind;
	u64 addr;        /* CON_PORT, CON_MMIO: where; CON_COM: 1..4 */
	unsigned stride; /* CON_MMIO: 1, 2 or 4 */
	u32 baud;        /* 0: 115200, or as firmware left it */
};

enum { CONSOLE_WISHES_MAX = 8 };

/* Parse such a list. Returns how many wishes it holds, -EINVAL if a word makes no sense, -E2BIG if there are too many. */
int console_wishes_parse(const char *text, struct console_wish wish[CONSOLE_WISHES_MAX]);

/* True if one of the wishes is of this kind. */
bool console_wished(const struct console_wish *wish, unsigned wishes, enum console_kind kind);
