/*
 * Devices that firmware left at work: see leftovers.h. A network card that firmware booted from
 * writes each frame that comes into memory that is free by now. A watchdog that firmware started
 * and nobody feeds resets the machine in the middle of a run.
 *
 * Sources: PCI-SIG, "PCI Local Bus Specification" 3.0, 2004, 6.2.2 "Device control", appendix D
 * "Class codes"; Intel, "I/O Controller Hub 9 Datasheet", 2008, 13.9 "System management TCO
 * registers"; Intel, "100 Series Chipset Family Datasheet", 2015, volume 2, 5.1 "SMBus" (TCOBASE).
 */
#include "arch/x86_64/cpu/leftovers.h"

#include <arch/pci.h>

#include "arch/x86_64/cpu/io.h"
#include "kernel/core/printk.h"

enum {
	CLASS_DISPLAY = 0x03,
	CLASS_BRIDGE = 0x06,
	CLASS_SYSTEM = 0x08,
	CLASS_USB = 0x0c03,
	HEADER_DEVICE = 0
};
enum { INTEL = 0x8086, LPC = 31 << 3, SMBUS = 31 << 3 | 4 };
enum { PM_BASE = 0x40, PM_CONTROL = 0x44, PM_ON = 1 << 7, PM_TCO = 0x60 };
enum { TCO_BASE = 0x50, TCO_CONTROL = 0x54, TCO_ON = 1 << 8 };

bool leftover_stop(const struct pci_place *at)
{
	const u32 class = pci_read(at, PCI_CLASS), type = pci_read(at, PCI_HEADER) >> 16 & 0x7f;

	if (type != HEADER_DEVICE || class >> 24 == CLASS_DISPLAY || class >> 24 == CLASS_BRIDGE ||
	    class >> 24 == CLASS_SYSTEM || class >> 16 == CLASS_USB ||
	    !(pci_read(at, PCI_COMMAND) & PCI_ENABLE_MASTER))
		return false;
	pci_command(at, 0, PCI_ENABLE_MASTER);
	return true;
}

u16 tco_base(void)
{
	const struct pci_place lpc = {.next = LPC}, smbus = {.next = SMBUS};

	if ((pci_read(&lpc, PCI_ID) & 0xffff) != INTEL)
		return 0;
	if ((pci_read(&smbus, PCI_ID) & 0xffff) == INTEL &&
	    (pci_read(&smbus, TCO_CONTROL) & TCO_ON))
		return pci_read(&smbus, TCO_BASE) & 0xffe0;
	if (!(pci_read(&lpc, PM_BASE) & 1) || !(pci_read(&lpc, PM_CONTROL) & PM_ON))
		return 0;
	return (u16)((pci_read(&lpc, PM_BASE) & 0xff80) + PM_TCO);
}

bool tco_stop(void)
{
	const u16 control = (u16)(tco_base() + TCO_CONTROL1);

	if (control == TCO_CONTROL1 || (inw(control) & TCO_HALT))
		return false;
	outw(control, inw(control) | TCO_HALT);
	if (inw(control) & TCO_HALT)
		pr_info("the chipset's watchdog (TCO) was not halted and is now");
	else
		pr_warn("the chipset's watchdog (TCO) cannot be halted and may reset the machine");
	return true;
}

void leftovers_stop(void)
{
	struct pci_place at = PCI_FIRST;
	unsigned stopped = 0;

	for (; pci_next(&at); at.next++)
		stopped += leftover_stop(&at);
	if (stopped > 0)
		pr_info("PCI: devices that firmware left at work may no longer write to memory: %u",
			stopped);
	tco_stop();
}
