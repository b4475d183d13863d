/*
 * The consoles of this machine. console= chooses them; without it they are
 *
 *   UARTs       COM1..COM4, all that answer; the one that ACPI's SPCR names, at the speed that it
 *               states; a PCI card if there is neither
 *   a screen    if the loader or the BIOS left one that can be written
 *   a keyboard  if there is a PS/2 controller
 *
 * Any subset will do, including none, because the log stays in RAM. See kernel/console/console.h.
 * The screen is in console_screen.c.
 */
#include "arch/x86_64/consoles/console.h"

#include <arch/boot.h>
#include <arch/mmio.h>
#include <arch/pci.h>

#include "arch/x86_64/acpi/acpi_find.h"
#include "arch/x86_64/consoles/console_screen.h"
#include "arch/x86_64/consoles/keyboard.h"
#include "arch/x86_64/cpu/io.h"
#include "kernel/console/console_uart.h"
#include "kernel/console/console_wish.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/panic.h"
#include "kernel/core/printk.h"
#include "mm/mm.h"

/* The consoles that console=auto tries. Those that are missing cause no warning. */
#define AUTOMATIC "com1,com2,com3,com4,screen,kbd,spcr,pci"

static struct console_wish wish[2 * CONSOLE_WISHES_MAX] = {{.kind = CON_AUTO}};
static unsigned wishes = 1;

static int parse_wishes(const struct option *opt, const char *value)
{
	struct console_wish list[CONSOLE_WISHES_MAX];
	const int n = console_wishes_parse(value, list);

	if (n < 0)
		return -EINVAL;
	for (int i = 0; i < n; i++)
		wish[i] = list[i];
	wishes = (unsigned)n;
	return 0;
}

OPTION(console,
       .values = "auto|none|com1..4:BAUD|port:ADDR:BAUD|mmio:ADDR:STRIDE:BAUD|spcr|pci|screen|kbd, "
		 "commas between",
       .help = "where the log goes besides memory", .parse = parse_wishes, .boot_only = true);

enum {
	SPCR_16550 = 0,
	SPCR_16450 = 1,
	SPCR_16550_GAS = 0x12,
	BAUD_MAX = 115200,
	ACCESS_DWORD = 3,
	UART_BYTES = 8
};
/* PCI-SIG, "PCI Code and ID Assignment Specification" 1.12, 2020, class 07h. */
enum { CLASS_SERIAL = 0x0700, INTERFACE_16950 = 6 };

static struct uart uarts[ARRAY_LEN(wish)];
static unsigned uart_count;

/* ---- registers ---- */

static u8 port_in(const struct uart *uart, unsigned reg)
{
	return inb((u16)(uart->base + reg));
}

static void port_out(const struct uart *uart, unsigned reg, u8 value)
{
	outb((u16)(uart->base + reg), value);
}

static u8 memory_in(const struct uart *uart, unsigned reg)
{
	const volatile void __iomem *regs = (const volatile void __iomem *)uart->base;
	const unsigned at = reg * uart->stride;

	return uart->width == 4 ? (u8)mmio_read32(regs, at) : mmio_read8(regs, at);
}

static void memory_out(const struct uart *uart, unsigned reg, u8 value)
{
	volatile void __iomem *regs = (volatile void __iomem *)uart->base;
	const unsigned at = reg * uart->stride;

	if (uart->width == 4)
		mmio_write32(regs, at, value);
	else
		mmio_write8(regs, at, value);
}

/* ---- finding UARTs ---- */

/* Start a UART whose registers are known, as the next one of the list. baud 0: as it is. */
static bool take_uart(const struct uart *found, u32 baud)
{
	struct uart *uart = &uarts[uart_count];

	if (uart_count == ARRAY_LEN(uarts))
		return false;
	*uart = *found;
	uart->divisor = (u16)(baud ? BAUD_MAX / baud : 0);
	if (!uart_start(uart))
		return false;
	uart_count++;
	console_register(&uart->console);
	pr_info("console: %s", uart->console.name);
	return true;
}

void console_drain(void)
{
	for (unsigned i = 0; i < uart_count; i++)
		if (!uarts[i].console.dead)
			uart_drain(&uarts[i]);
}

static struct uart *uart_of_port(u16 port)
{
	for (unsigned i = 0; i < uart_count; i++)
		if (uarts[i].in == port_in && uarts[i].base == port)
			return &uarts[i];
	return NULL;
}

static bool take_port(const char *name, u16 port, u32 baud, bool trusted)
{
	const struct uart uart = {.console = {.name = name},
				  .in = port_in,
				  .out = port_out,
				  .base = port,
				  .trusted = trusted};

	return uart_of_port(port) || take_uart(&uart, baud);
}

static bool take_memory(const char *name, phys_t phys, unsigned stride, unsigned width, u32 baud,
			bool trusted)
{
	volatile void __iomem *regs = mmio_map(phys, (u64)UART_BYTES * stride);
	const struct uart uart = {.console = {.name = name},
				  .in = memory_in,
				  .out = memory_out,
				  .base = (__force virt_t)regs,
				  .stride = stride,
				  .width = width,
				  .trusted = trusted};

	return regs && take_uart(&uart, baud);
}

/*
 * A port that is in use already, at 115200, gets the speed that the table states: whoever reads
 * firmware's own output goes on reading. A speed on the command line stays.
 */
static bool take_spcr_port(u16 port, u32 baud, bool automatic)
{
	struct uart *uart = uart_of_port(port);

	if (!uart)
		return take_port("SPCR", port, 0, true);
	if (automatic && uart->divisor == 1 && baud != BAUD_MAX)
		uart_change_speed(uart, (u16)(baud ? BAUD_MAX / baud : 0));
	return true;
}

/*
 * The UART that SPCR names. Firmware has set its speed, from a clock that may be unknown, so the
 * speed is left alone.
 */
static bool take_spcr(bool automatic)
{
	const struct acpi_table *table = acpi_get(ACPI_SPCR);
	struct acpi_spcr spcr;
	bool wide;

	if (!table || acpi_spcr_parse(table, &spcr) < 0)
		return false;
	if (spcr.interface != SPCR_16550 && spcr.interface != SPCR_16450 &&
	    spcr.interface != SPCR_16550_GAS) {
		pr_info("console: SPCR names a UART of type %u, which is not driven here",
			spcr.interface);
		return false;
	}
	if (spcr.base.space == ACPI_SPACE_IO && spcr.base.addr <= 0xfff8)
		return take_spcr_port((u16)spcr.base.addr, acpi_spcr_bits(&spcr), automatic);
	if (spcr.base.space != ACPI_SPACE_MEMORY)
		return false;
	/* some tables state only one of the two, some both */
	wide = spcr.base.bits >= 32 || spcr.base.access == ACCESS_DWORD;
	return take_memory("SPCR", spcr.base.addr, wide ? 4 : 1,
			   spcr.base.access == ACCESS_DWORD ? 4 : 1, 0, true);
}

/*
 * The first serial port with a 16550's interface on any bus. Only one to which firmware gave an
 * address can be used.
 */
static bool take_pci(void)
{
	struct pci_place at = PCI_FIRST;

	for (; pci_next(&at); at.next++) {
		const u32 class = pci_read(&at, PCI_CLASS);
		struct pci_bar bar;

		if (class >> 16 != CLASS_SERIAL || (class >> 8 & 0xff) > INTERFACE_16950)
			continue;
		bar = pci_bar(&at, 0);
		if (!bar.base)
			continue;
		pci_command(&at, bar.in_memory ? PCI_ENABLE_MEMORY : PCI_ENABLE_IO, 0);
		pr_info("console: PCI UART %02x:%02x.%u at %s %llx", at.next >> 8,
			at.next >> 3 & 31, at.next & 7, bar.in_memory ? "memory" : "port",
			bar.base);
		return bar.in_memory ? take_memory("PCI", bar.base, 1, 1, 0, true)
				     : take_port("PCI", (u16)bar.base, BAUD_MAX, false);
	}
	return false;
}

/* ---- what is wished ---- */

static bool is_wished(enum console_kind kind)
{
	for (unsigned i = 0; i < wishes; i++)
		if (wish[i].kind == kind)
			return true;
	return false;
}

static bool take(const struct console_wish *w)
{
	switch (w->kind) {
	case CON_PORT:
		return take_port(w->name, (u16)w->addr, w->baud ? w->baud : BAUD_MAX, false);
	case CON_SCREEN:
		return console_screen_init();
	case CON_KEYBOARD:
		return keyboard_start();
	case CON_MMIO:
		return take_memory(w->name, w->addr, w->stride, w->stride == 4 ? 4 : 1, w->baud,
				   false);
	case CON_SPCR:
		return take_spcr(is_wished(CON_AUTO));
	case CON_PCI:
		return (w->automatic && uart_count > 0) || take_pci();
	case CON_AUTO:
	case CON_NONE:
		break;
	}
	return true;
}

/* Of the kinds without an address there is one, however often it is wished. */
static void take_all(enum console_kind first, enum console_kind last)
{
	u32 taken = 0;

	for (unsigned i = 0; i < wishes; i++) {
		const struct console_wish *w = &wish[i];

		if (w->kind < first || w->kind > last || (taken & 1u << w->kind))
			continue;
		taken |= w->kind == CON_PORT || w->kind == CON_MMIO ? 0 : 1u << w->kind;
		if (take(w) || w->automatic)
			continue;
		if (w->addr)
			pr_warn("console: %s does not answer at %llx", w->name, w->addr);
		else
			pr_warn("console: this machine has no %s that can be used", w->name);
	}
}

void arch_console_init(void)
{
	const unsigned given = wishes;
	int n = 0;

	if (is_wished(CON_NONE)) {
		wishes = 0;
		return;
	}
	if (is_wished(CON_AUTO))
		n = console_wishes_parse(AUTOMATIC, &wish[given]);
	ASSERT(n >= 0, "console=auto is too long");
	wishes += (unsigned)n;
	for (unsigned i = given; i < wishes; i++)
		wish[i].automatic = true;
	take_all(CON_PORT, CON_KEYBOARD);
}

void console_firmware_init(void)
{
	take_all(CON_MMIO, CON_PCI);
	if (!consoles && wishes > 0)
		pr_warn("console: none; the log is in memory only");
}
