/*
 * PCI configuration space, for the few devices that the kernel drives: a serial port and virtio.
 *
 *	struct pci_place at = PCI_FIRST;
 *	for (; pci_next(&at); at.next++)
 *		if (pci_read(&at, PCI_ID) == ...)
 *
 * One CPU at a time; start-up only.
 */
#pragma once

#include "kernel/lib/types.h"

/* A function of a device, and how far a search is: functions are numbered through all buses. */
struct pci_place {
	u32 next;  /* pci_next() looks from here on: bus << 8 | device << 3 | function */
	u32 buses; /* the highest bus behind a bridge so far */
};

#define PCI_FIRST ((struct pci_place){0})

enum {
	PCI_ID = 0x00,
	PCI_COMMAND = 0x04, /* the status is in the upper half */
	PCI_CLASS = 0x08,
	PCI_HEADER = 0x0c,
	PCI_BAR0 = 0x10,
	PCI_CAPABILITIES = 0x34
};

/*
 * Go to the first function from at->next on that exists; false if there is none, or no PCI. Of a
 * bus that no bridge leads to, only the first slot is read if that is empty: 300 reads instead of
 * 8192, which take a virtual machine 20 ms and more.
 */
bool pci_next(struct pci_place *at);

/* The aligned word of configuration space that holds the byte at `reg`, 0 to 255. */
u32 pci_read(const struct pci_place *at, unsigned reg);

/*
 * Switch the device's decoding of ports or memory, and whether it may read and write memory, `on`
 * or `off`.
 */
enum pci_enable { PCI_ENABLE_IO = 1, PCI_ENABLE_MEMORY = 2, PCI_ENABLE_MASTER = 4 };
void pci_command(const struct pci_place *at, unsigned on, unsigned off);

/* The address that firmware gave to one of the base address registers, 0 to 5. */
struct pci_bar {
	bool in_memory;
	u64 base; /* I/O port, or physical address; 0: none */
};
struct pci_bar pci_bar(const struct pci_place *at, unsigned number);
