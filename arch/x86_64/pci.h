/*
 * PCI configuration space through the ports every PC has (PCI-SIG, "PCI Local Bus Specification" 3.0, 3.2.2.3.2). Only
 * used to find a serial port: nothing else here drives a device.
 */
#pragma once

#include "kernel/types.h"

struct pci_uart {
	u8 bus, device, function;
	bool in_memory;
	u64 base; /* I/O port, or physical address */
};

/* The first serial port with a 16550's interface on any bus, its decoding switched on; false: none, or no PCI. */
bool pci_find_uart(struct pci_uart *out);
