/*
 * 16550 serial ports, wherever their registers are; 8N1, polled.
 *
 * Source: National Semiconductor, "PC16550D Universal Asynchronous Receiver/Transmitter with
 * FIFOs", 1995.
 */
#pragma once

#include "kernel/console/console.h"
#include "kernel/lib/types.h"

struct uart {
	struct console console;
	/*
	 * How the registers are reached: set by the architecture, or by a test that plays the
	 * device.
	 */
	u8 (*in)(const struct uart *uart, unsigned reg);
	void (*out)(const struct uart *uart, unsigned reg, u8 value);
	u64 base;          /* argument of in and out: port, or virtual address */
	unsigned stride;   /* bytes from one register to the next */
	unsigned width;    /* bytes per access: 1 or 4 */
	u16 divisor;       /* of the 115200 clock; 0: keep the speed that firmware set */
	u16 found_divisor; /* that firmware left; from uart_start() on */
	/* firmware names it as a UART: skip the loopback test, which a few remote consoles fail */
	bool trusted;
	unsigned fifo; /* bytes it takes at once; found by uart_start() */
	u64 limit_ns;  /* how long it may stay full; 0: the default limit */
};

/*
 * Check whether a UART answers, and set it up. False, with the device left alone as far as
 * possible, if there is none, or one that does not send. The time is bounded. Boot CPU.
 */
bool uart_start(struct uart *uart);

/*
 * Wait until the last byte has left the device, which a reset or another speed would lose; at most
 * 200 ms. Any context.
 */
void uart_drain(const struct uart *uart);

/*
 * Change the speed of a UART that was started, once it has sent its bytes; divisor 0 is the speed
 * that firmware left. Boot CPU, while nothing is printed.
 */
void uart_change_speed(struct uart *uart, u16 divisor);
