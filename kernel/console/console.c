/*
 * The list of consoles: see console.h.
 */
#include "kernel/console/console.h"

#include "kernel/core/printk.h"

struct console *consoles;

/* True if this write made the console dead. */
static bool feed(struct console *console, const char *text, size_t len)
{
	if (console->dead || !console->write)
		return false;
	console->dead = !console->write(console, text, len);
	return console->dead;
}

unsigned console_list_write(struct console *first, const char *text, size_t len)
{
	unsigned died = 0;

	for (struct console *c = first; c; c = c->next)
		died += feed(c, text, len);
	return died;
}

int console_list_read(struct console *first)
{
	for (struct console *c = first; c; c = c->next) {
		const int byte = c->read && !c->dead ? c->read(c) : -1;

		if (byte >= 0)
			return byte;
	}
	return -1;
}

/*
 * The warning goes to the remaining consoles. It is nested, because the caller holds the output,
 * and appears at most once for each console.
 */
void console_write(const char *text, size_t len)
{
	if (console_list_write(consoles, text, len) > 0)
		pr_warn("console: a device stopped taking bytes and was dropped");
}

int console_read(void)
{
	return console_list_read(consoles);
}

void console_size(unsigned *columns, unsigned *rows)
{
	*columns = *rows = 0;
	for (const struct console *c = consoles; c; c = c->next) {
		if (c->dead || c->columns == 0)
			continue;
		*columns = *columns ? MIN(*columns, c->columns) : c->columns;
		*rows = *rows ? MIN(*rows, c->rows) : c->rows;
	}
	if (*columns == 0) {
		*columns = 80;
		*rows = 24;
	}
}

bool console_screens_only(void)
{
	bool any = false;

	for (const struct console *c = consoles; c; c = c->next)
		any |= c->columns > 0 && !c->dead;
	for (struct console *c = consoles; any && c; c = c->next)
		c->write = c->columns > 0 ? c->write : NULL;
	return any;
}

unsigned console_show(const struct qr *qr)
{
	unsigned can = 0;

	for (struct console *c = consoles; c; c = c->next) {
		if (c->dead || !c->show)
			continue;
		c->show(c, qr);
		can++;
	}
	return can;
}

void console_register(struct console *console)
{
	char buf[256];
	u64 pos = 0;
	size_t len;

	do {
		len = log_read(&pos, buf, sizeof(buf));
		feed(console, buf, len);
	} while (len > 0);
	console->next = consoles;
	consoles = console;
}
