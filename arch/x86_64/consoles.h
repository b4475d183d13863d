/* Consoles behind <arch/console.h>. */
#pragma once

#include "kernel/types.h"

struct console {
	const char *name;
	/* Write everything, or return false if the device stopped taking bytes: it is then dropped for good. */
	bool (*write)(struct console *console, const char *text, size_t len);
	int (*read)(struct console *console); /* next byte or -1; NULL if it has no input */
	bool dead;
	struct console *next;
};

/* Add a console; it first prints the log so far. Boot CPU, start-up. */
void console_register(struct console *console);

/* COM1 if it answers, else NULL. */
struct console *uart_probe(void);
