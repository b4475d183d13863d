/* Serial ports on PCI (<arch/pci.h>). */
#pragma once

#include "kernel/lib/types.h"

struct pci_uart {
	u8 bus, device, function;
	bool in_memory;
	u64 base; /* I/O port, or physical address */
};

/*
 * Find the first serial port with a 16550's interface on any bus and switch its decoding on. False
 * if there is none, or no PCI.
 */
bool pci_find_uart(struct pci_uart *out);
