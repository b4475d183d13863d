/* The machine's consoles: UARTs at ports, in memory and on the PCI bus. */
#pragma once

/*
 * Register the consoles that need firmware tables or mappings: the UART that SPCR names, UARTs in
 * memory, UARTs on the PCI bus.
 */
void console_firmware_init(void);
