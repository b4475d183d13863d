/* The machine's consoles: UARTs at ports, in memory and on the PCI bus. */
#pragma once

#include "arch/x86_64/consoles/consoles.h"

/*
 * Register the consoles that need firmware tables or mappings: the UART that SPCR names, UARTs in
 * memory, UARTs on the PCI bus.
 */
void console_firmware_init(void);

/* Set up register access to a 16550 at an I/O port, or at a mapped address. */
void uart_at_port(struct uart *uart, u16 port);
void uart_in_memory(struct uart *uart, volatile void __iomem *regs, unsigned stride,
		    unsigned width);
