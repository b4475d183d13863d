/* The machine's consoles, beyond <arch/boot.h>: what start-up does with them step by step, and the parts of console.c. */
#pragma once

#include "kernel/console.h"
#include "kernel/console_uart.h"
#include "kernel/types.h"

struct boot_info;

/*
 * The screen is first written through the boot page tables (below 4 GiB) and then, write-combining, through a mapping of its
 * own, made on the kernel's tables once they are loaded; in between nothing is drawn.
 */
void console_screen_reserve(void); /* its memory is nobody's RAM */
void console_screen_leave(void);
void console_screen_map(void);

/* Consoles that need firmware tables or mappings: SPCR's, UARTs in memory, UARTs on the PCI bus. */
void console_firmware_init(void);

/* ---- parts ------------------------------------------------------------------------------------------------------ */

/* Register access of a 16550 at an I/O port, or at a mapped address. */
void uart_at_port(struct uart *uart, u16 port);
void uart_in_memory(struct uart *uart, volatile void __iomem *regs, unsigned stride, unsigned width);

/* The framebuffer or VGA text as the loader described it, else VGA text if the card is in that mode; false: none. */
bool console_screen_init(const struct boot_info *info);

/* The PS/2 keyboard, or NULL if there is no controller. */
struct console *keyboard_probe(void);
