/*
 * PCI configuration space through the ports that every PC has: see <arch/pci.h>.
 *
 * Machines have several root buses, and it does not matter here which bridge a bus is behind. A bus
 * has a higher number than the bridge that leads to it.
 *
 * Source: PCI-SIG, "PCI Local Bus Specification" 3.0, 2004, 3.2.2.3.2 "Software generation of
 * configuration transactions", 6.1 "Configuration space organization", 6.2.5.1 "Address maps".
 */
#include <arch/pci.h>

#include "arch/x86_64/cpu/io.h"

enum { PORT_ADDRESS = 0xcf8, PORT_DATA = 0xcfc };
enum { FUNCTIONS = 8, BUS = 32 * FUNCTIONS, PLACES = 256 * BUS, BARS = 6 };
enum { BAR_IO = 1, BAR_TYPE = 6, BAR_64BIT = 4 };

enum { HEADER_BRIDGE = 1, BRIDGE_BUSES = 0x18 };

#define ENABLE       0x80000000u
#define MULTI_DEVICE (1u << 23)
#define ABSENT       0xffffffffu

static void select(const struct pci_place *at, unsigned reg)
{
	outl(PORT_ADDRESS, ENABLE | at->next << 8 | (reg & 0xfc));
}

u32 pci_read(const struct pci_place *at, unsigned reg)
{
	select(at, reg);
	return inl(PORT_DATA);
}

/* Writing ones clears status bits in the upper half, so zeros are written there. */
void pci_enable(const struct pci_place *at, unsigned enable)
{
	const u32 command = pci_read(at, PCI_COMMAND) & 0xffff;

	select(at, PCI_COMMAND);
	outl(PORT_DATA, command | enable);
}

static bool pci_present(void)
{
	outl(PORT_ADDRESS, ENABLE);
	return inl(PORT_ADDRESS) == ENABLE;
}

/* A device with one function may answer for all. */
static bool has_functions(const struct pci_place *at)
{
	const struct pci_place first = {.next = at->next & ~(FUNCTIONS - 1u)};

	return pci_read(&first, PCI_HEADER) & MULTI_DEVICE;
}

/* The highest number of a bus behind this function, if it is a bridge; else 0. */
static u32 buses_behind(const struct pci_place *at)
{
	const u32 type = pci_read(at, PCI_HEADER) >> 16 & 0x7f;

	return type == HEADER_BRIDGE ? pci_read(at, BRIDGE_BUSES) >> 16 & 0xff : 0;
}

bool pci_next(struct pci_place *at)
{
	if (!pci_present())
		return false;
	for (; at->next < PLACES; at->next++) {
		const unsigned function = at->next % FUNCTIONS;
		const bool exists = pci_read(at, PCI_ID) != ABSENT;

		if (exists && (function == 0 || has_functions(at))) {
			at->buses = MAX(at->buses, buses_behind(at));
			return true;
		}
		if (!exists && at->next % BUS == 0 && at->next / BUS > at->buses)
			at->next |= BUS - 1;
		else if (exists || function == 0)
			at->next |= FUNCTIONS - 1; /* the device has no further functions */
	}
	return false;
}

struct pci_bar pci_bar(const struct pci_place *at, unsigned number)
{
	const u32 low = number < BARS ? pci_read(at, PCI_BAR0 + number * 4) : 0;
	struct pci_bar bar = {.in_memory = !(low & BAR_IO)};

	bar.base = bar.in_memory ? low & ~0xfu : low & ~3u & 0xffff;
	if (bar.in_memory && (low & BAR_TYPE) == BAR_64BIT && number + 1 < BARS)
		bar.base |= (u64)pci_read(at, PCI_BAR0 + (number + 1) * 4) << 32;
	return bar;
}
