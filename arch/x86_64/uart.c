/*
 * 16550 serial port COM1, 115200 8N1, polled (National Semiconductor, PC16550D data sheet, 1995).
 *
 * Every wait is bounded, in polls and in time, because the clock may not be running yet: a poll is a port read of about
 * a microsecond, a byte at 115200 takes 87 us. A device that stays full beyond both bounds is dead; the caller drops
 * it. The bound is generous because an emulator's port stays full while the host's reader sleeps, and a dead one costs
 * it only once.
 */
#include <arch/barrier.h>
#include <arch/clock.h>

#include "arch/x86_64/consoles.h"
#include "arch/x86_64/io.h"

#define COM1 0x3f8

enum { REG_DATA = 0, REG_IRQ = 1, REG_FIFO = 2, REG_LINE = 3, REG_MODEM = 4, REG_STATUS = 5, REG_SCRATCH = 7 };
enum { STATUS_READY = 0x01, STATUS_EMPTY = 0x20, MODEM_LOOP = 0x1b, MODEM_NORMAL = 0x03 };
enum { UART_POLLS = 2000000, PROBE_POLLS = 20000, UART_FIFO = 16 };

#define UART_DEADLINE_NS (10 * NS_PER_S)

static bool uart_wait_empty(void)
{
	const u64 start = clock_ns();

	for (u64 polls = 0; polls < UART_POLLS || (start && clock_ns() - start < UART_DEADLINE_NS); polls++) {
		if (inb(COM1 + REG_STATUS) & STATUS_EMPTY)
			return true;
		cpu_relax();
	}
	return false;
}

/* One FIFO's worth per wait. */
static bool uart_write(struct console *console, const char *text, size_t len)
{
	unsigned room = 0;

	(void)console;
	for (size_t i = 0; i < len; i++) {
		if (room < 2 && !uart_wait_empty())
			return false;
		if (room < 2)
			room = UART_FIFO;
		if (text[i] == '\n') {
			outb(COM1 + REG_DATA, '\r');
			room--;
		}
		outb(COM1 + REG_DATA, (u8)text[i]);
		room--;
	}
	return true;
}

static int uart_read(struct console *console)
{
	const u8 status = inb(COM1 + REG_STATUS);

	(void)console;
	return status != 0xff && (status & STATUS_READY) ? inb(COM1 + REG_DATA) : -1;
}

static void uart_setup(void)
{
	outb(COM1 + REG_IRQ, 0);
	outb(COM1 + REG_LINE, 0x80); /* divisor latch */
	outb(COM1 + REG_DATA, 1);    /* 115200 */
	outb(COM1 + REG_IRQ, 0);
	outb(COM1 + REG_LINE, 0x03); /* 8N1 */
	outb(COM1 + REG_FIFO, 0x07); /* on, cleared */
}

/* A byte sent in loopback comes back only from a UART. */
static bool uart_answers(void)
{
	bool ok;

	outb(COM1 + REG_MODEM, MODEM_LOOP);
	outb(COM1 + REG_DATA, 0xa5);
	ok = false;
	for (unsigned i = 0; i < PROBE_POLLS && !ok; i++)
		ok = inb(COM1 + REG_STATUS) & STATUS_READY;
	ok = ok && inb(COM1 + REG_DATA) == 0xa5;
	outb(COM1 + REG_MODEM, MODEM_NORMAL);
	return ok;
}

static struct console uart = {.name = "COM1", .write = uart_write, .read = uart_read};

struct console *uart_probe(void)
{
	if (inb(COM1 + REG_STATUS) == 0xff) /* nothing drives the bus */
		return NULL;
	uart_setup();
	if (!uart_answers() || !uart_write(&uart, "\n", 1)) /* the loader left the cursor anywhere */
		return NULL;
	return &uart;
}
