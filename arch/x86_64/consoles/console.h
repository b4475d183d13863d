/* The machine's consoles: UARTs at ports, in memory and on the PCI bus. */
#pragma once

/*
 * Register the consoles that need firmware tables or mappings: the UART that SPCR names, UARTs in
 * memory, UARTs on the PCI bus.
 */
void console_firmware_init(void);

/* Wait until every UART that lives has sent its last byte, at most 200 ms each. Any context. */
void console_drain(void);
