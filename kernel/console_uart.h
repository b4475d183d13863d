/*
 * 16550 serial ports, wherever their registers are; 8N1, polled.
 *
 * Source: National Semiconductor, "PC16550D Universal Asynchronous Receiver/Transmitter with FIFOs", 1995.
 */
#pragma once

#include "kernel/console.h"
#include "kernel/types.h"

struct uart {
	struct console console;
	/* How this one's registers are reached: by the architecture, or by a test that plays the device. */
	u8 (*in)(const struct uart *uart, unsigned reg);
	void (*out)(const struct uart *uart, unsigned reg, u8 value);
	u64 base;        /* for in and out: port, or virtual address */
	unsigned stride; /* bytes from one register to the next */
	unsigned width;  /* bytes of one access: 1 or 4 */
	u16 divisor;     /* of the 115200 clock; 0: the speed stays as firmware left it */
	bool trusted;    /* firmware says that this is one: no loopback test, which a few remote consoles fail */
	unsigned fifo;   /* bytes it takes at once; found by uart_start() */
	u64 limit_ns;    /* how long it may stay full; 0: the usual bound */
};

/*
 * See whether a UART answers and set it up. False, with the device left alone as far as possible, if nothing is there,
 * or nothing that sends. Bounded. Boot CPU.
 */
bool uart_start(struct uart *uart);
