/*
 * The search for a PCI serial port; see pci.h. It is done only if no other port answered or
 * console=pci asks for it.
 *
 * Source: PCI-SIG, "PCI Code and ID Assignment Specification" 1.12, 2020, class 07h.
 */
#include "arch/x86_64/consoles/pci.h"

#include <arch/pci.h>

enum { CLASS_SERIAL = 0x0700, INTERFACE_16950 = 6 };

/* True if this is a serial port to which firmware gave an address, which goes to out->base. */
static bool is_uart(const struct pci_place *at, struct pci_uart *out)
{
	const u32 class = pci_read(at, PCI_CLASS);
	struct pci_bar bar;

	if (class >> 16 != CLASS_SERIAL || (class >> 8 & 0xff) > INTERFACE_16950)
		return false;
	bar = pci_bar(at, 0);
	out->in_memory = bar.in_memory;
	out->base = bar.base;
	return out->base != 0;
}

bool pci_find_uart(struct pci_uart *out)
{
	struct pci_place at = PCI_FIRST;

	for (; pci_next(&at); at.next++) {
		*out = (struct pci_uart){.bus = (u8)(at.next >> 8),
					 .device = at.next >> 3 & 31,
					 .function = at.next & 7};
		if (!is_uart(&at, out))
			continue;
		pci_enable(&at, out->in_memory ? PCI_ENABLE_MEMORY : PCI_ENABLE_IO);
		return true;
	}
	return false;
}
