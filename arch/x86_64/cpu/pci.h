/* PCI configuration space, arch-internal part; the rest is <arch/pci.h>. */
#pragma once

#include "kernel/lib/types.h"

bool pci_has_ports(void);

/* Can the configuration of so many buses lie at `bus0`? Not where RAM is the kernel's. */
bool pci_memory_is_possible(phys_t bus0, u32 buses);

/*
 * From now on use the memory at `bus0` instead of the ports: it holds the configuration of `buses`
 * buses from bus 0 on. 0: use the ports. Once mappings can be made, one CPU at a time.
 */
void pci_use_memory(phys_t bus0, u32 buses);
