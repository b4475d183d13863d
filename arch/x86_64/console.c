/*
 * Consoles: a list, fed with every byte of the log; one that stops taking bytes is dropped, none at all is fine.
 * Callers serialise (kernel/printk.c). console= chooses; the default takes what answers.
 */
#include <arch/boot.h>
#include <arch/console.h>

#include "arch/x86_64/consoles.h"
#include "boot/boot_info.h"
#include "kernel/cmdline.h"
#include "kernel/printk.h"

enum console_choice { CONSOLE_AUTO, CONSOLE_COM1, CONSOLE_NONE };

static unsigned console_choice;
OPTION_CHOICE(console, console_choice, "auto|com1|none", "where the log goes besides memory", .boot_only = true);

static struct console *consoles;

static void console_feed(struct console *console, const char *text, size_t len)
{
	if (!console->dead && !console->write(console, text, len))
		console->dead = true;
}

void console_write(const char *text, size_t len)
{
	for (struct console *c = consoles; c; c = c->next)
		console_feed(c, text, len);
}

int console_read(void)
{
	for (struct console *c = consoles; c; c = c->next) {
		const int byte = c->read && !c->dead ? c->read(c) : -1;

		if (byte >= 0)
			return byte;
	}
	return -1;
}

void console_register(struct console *console)
{
	char buf[256];
	u64 pos = 0;
	size_t len;

	while ((len = log_read(&pos, buf, sizeof(buf))) > 0)
		console_feed(console, buf, len);
	console->next = consoles;
	consoles = console;
}

void arch_console_init(const struct boot_info *info)
{
	struct console *uart;

	(void)info;
	if (console_choice == CONSOLE_NONE)
		return;
	uart = uart_probe();
	if (uart)
		console_register(uart);
	else
		pr_warn("console: no UART answers at COM1");
}
