/*
 * PCI configuration space through the ports that every PC has (PCI-SIG, "PCI Local Bus
 * Specification" 3.0, 3.2.2.3.2). It is used only to find a serial port; no other PCI device is
 * driven.
 */
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
