/*
 * 16550 driver: see console_uart.h.
 *
 * Every wait is bounded in time, or in polls while the clock is not running. A poll is an access of
 * about a microsecond; a byte at 115200 takes 87 us. A device that stays full beyond the limit is
 * dead, and the list of consoles drops it. The limit is generous because an emulator's port stays
 * full while the host's reader sleeps, and a dead port costs it only once.
 */
#include "kernel/console/console_uart.h"

#include <arch/clock.h>

#include "kernel/core/printk.h"

enum { REG_DATA = 0, REG_IRQ = 1, REG_FIFO = 2, REG_LINE = 3, REG_MODEM = 4, REG_STATUS = 5 };
enum { LINE_8N1 = 0x03, LINE_DIVISOR = 0x80, FIFO_ON_CLEARED = 0x07, FIFO_WORKS = 0xc0 };
enum {
	STATUS_READY = 0x01,
	STATUS_EMPTY = 0x20, /* takes bytes */
	STATUS_SENT = 0x40,  /* and has sent them */
	STATUS_ABSENT = 0xff,
	MODEM_LOOP = 0x1b,
	MODEM_NORMAL = 0x03
};
enum { UART_POLLS = 2000000, PROBE_POLLS = 20000, UART_FIFO = 16, LOOP_BYTE = 0xa5 };

#define UART_LIMIT_NS (10 * NS_PER_S)
#define SENT_LIMIT_NS (200 * NS_PER_MS) /* 16 bytes and the one on the line, at 1200 baud */

static bool wait_status(const struct uart *uart, u8 bit, u64 limit)
{
	const u64 start = clock_ns();

	limit = uart->limit_ns ? uart->limit_ns : limit;
	for (u64 polls = 0; start ? clock_ns() - start <= limit : polls < UART_POLLS; polls++) {
		if (uart->in(uart, REG_STATUS) & bit)
			return true;
		print_wait();
	}
	return false;
}

/* One wait for each FIFO's worth of bytes. */
static bool put_byte(const struct uart *uart, unsigned *room, u8 byte)
{
	if (*room == 0 && !wait_status(uart, STATUS_EMPTY, UART_LIMIT_NS))
		return false;
	*room = (*room ? *room : uart->fifo) - 1;
	uart->out(uart, REG_DATA, byte);
	return true;
}

static bool uart_write(struct console *console, const char *text, size_t len)
{
	const struct uart *uart = container_of(console, struct uart, console);
	unsigned room = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n' && !put_byte(uart, &room, '\r'))
			return false;
		if (!put_byte(uart, &room, (u8)text[i]))
			return false;
	}
	return true;
}

static int uart_read(struct console *console)
{
	const struct uart *uart = container_of(console, struct uart, console);
	const u8 status = uart->in(uart, REG_STATUS);

	return status != STATUS_ABSENT && (status & STATUS_READY) ? uart->in(uart, REG_DATA) : -1;
}

/* Write uart->divisor unless it is 0, and note the one that was there at first. */
static void set_speed(struct uart *uart)
{
	uart->out(uart, REG_IRQ, 0);
	uart->out(uart, REG_LINE, LINE_DIVISOR);
	if (!uart->found_divisor)
		uart->found_divisor =
			(u16)(uart->in(uart, REG_DATA) | uart->in(uart, REG_IRQ) << 8);
	if (uart->divisor) {
		uart->out(uart, REG_DATA, (u8)uart->divisor);
		uart->out(uart, REG_IRQ, (u8)(uart->divisor >> 8));
	}
	uart->out(uart, REG_LINE, LINE_8N1);
}

void uart_drain(const struct uart *uart)
{
	wait_status(uart, STATUS_SENT, SENT_LIMIT_NS);
}

void uart_change_speed(struct uart *uart, u16 divisor)
{
	uart_drain(uart);
	uart->divisor = divisor ? divisor : uart->found_divisor;
	set_speed(uart);
}

/* Send a byte in loopback; only a UART returns it. */
static bool answers(const struct uart *uart)
{
	bool ok = false;

	uart->out(uart, REG_MODEM, MODEM_LOOP);
	uart->out(uart, REG_DATA, LOOP_BYTE);
	for (unsigned i = 0; i < PROBE_POLLS && !ok; i++)
		ok = uart->in(uart, REG_STATUS) & STATUS_READY;
	ok = ok && uart->in(uart, REG_DATA) == LOOP_BYTE;
	uart->out(uart, REG_MODEM, MODEM_NORMAL);
	return ok;
}

bool uart_start(struct uart *uart)
{
	if (uart->in(uart, REG_STATUS) == STATUS_ABSENT) /* nothing drives the bus */
		return false;
	set_speed(uart);
	uart->out(uart, REG_FIFO, FIFO_ON_CLEARED);
	if (!uart->trusted && !answers(uart))
		return false;
	uart->fifo = (uart->in(uart, REG_FIFO) & FIFO_WORKS) == FIFO_WORKS ? UART_FIFO : 1;
	uart->console.write = uart_write;
	uart->console.read = uart_read;
	return uart_write(&uart->console, "\n", 1); /* the cursor may be anywhere */
}
