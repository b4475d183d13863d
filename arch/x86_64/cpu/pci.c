/*
 * PCI configuration space: see <arch/pci.h>. It is read through the ports that every PC has, or in
 * the memory that ACPI's MCFG names where there are no such ports.
 *
 * Machines have several root buses, and it does not matter here which bridge a bus is behind. A bus
 * has a higher number than the bridge that leads to it.
 *
 * Source: PCI-SIG, "PCI Local Bus Specification" 3.0, 2004, 3.2.2.3.2 "Software generation of
 * configuration transactions", 6.1 "Configuration space organization", 6.2.5.1 "Address maps";
 * "PCI Express Base Specification" 3.0, 2010, 7.2.2 "PCI Express Enhanced Configuration Access
 * Mechanism".
 */
#include <arch/memory.h>
#include <arch/mmio.h>
#include <arch/pci.h>

#include "arch/x86_64/cpu/io.h"
#include "arch/x86_64/cpu/pci.h"
#include "mm/map/memblock.h"
#include "mm/mm.h"

enum { PORT_ADDRESS = 0xcf8, PORT_DATA = 0xcfc };
enum { FUNCTIONS = 8, BUS = 32 * FUNCTIONS, PLACES = 256 * BUS, BARS = 6 };
enum { BAR_IO = 1, BAR_64BIT = 4 };

enum { HEADER_BRIDGE = 1, BRIDGE_BUSES = 0x18 };

#define ENABLE       0x80000000u
#define MULTI_DEVICE (1u << 23)
#define ABSENT       0xffffffffu

static phys_t memory;  /* where the configuration of bus 0 lies; 0: ports are used */
static u32 memory_end; /* the first place that is not there */
static volatile void __iomem *mapped;
static u32 mapped_place;

bool pci_has_ports(void)
{
	outl(PORT_ADDRESS, ENABLE);
	return inl(PORT_ADDRESS) == ENABLE;
}

bool pci_memory_is_possible(phys_t bus0, u32 buses)
{
	const u64 size = (u64)buses * BUS * PAGE_SIZE;

	return bus0 % (BUS * PAGE_SIZE) == 0 && phys_is_possible(bus0, size) &&
	       memblock_find_own(&memblock_memory, &memblock_reserved, bus0, bus0 + size) ==
		       PFN_NONE;
}

void pci_use_memory(phys_t bus0, u32 buses)
{
	memory = bus0;
	memory_end = buses * BUS;
}

/* The registers of a function in memory, of which one is mapped at a time; NULL: not there. */
static volatile void __iomem *registers(const struct pci_place *at)
{
	if (mapped && mapped_place == at->next)
		return mapped;
	if (mapped)
		mmio_unmap(mapped, PAGE_SIZE);
	mapped_place = at->next;
	mapped = at->next < memory_end ? mmio_map(memory + at->next * PAGE_SIZE, PAGE_SIZE) : NULL;
	return mapped;
}

static void select(const struct pci_place *at, unsigned reg)
{
	outl(PORT_ADDRESS, ENABLE | at->next << 8 | (reg & 0xfc));
}

u32 pci_read(const struct pci_place *at, unsigned reg)
{
	if (memory)
		return registers(at) ? mmio_read32(registers(at), reg & 0xfc) : ABSENT;
	select(at, reg);
	return inl(PORT_DATA);
}

void pci_command(const struct pci_place *at, unsigned on, unsigned off)
{
	/* writing ones clears status bits in the upper half, so zeros are written there */
	const u32 command = (pci_read(at, PCI_COMMAND) & 0xffff & ~off) | on;

	if (memory && registers(at)) {
		mmio_write32(registers(at), PCI_COMMAND, command);
	} else if (!memory) {
		select(at, PCI_COMMAND);
		outl(PORT_DATA, command);
	}
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
	if (!memory && !pci_has_ports())
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
	if (bar.in_memory && (low & BAR_64BIT) && number + 1 < BARS)
		bar.base |= (u64)pci_read(at, PCI_BAR0 + (number + 1) * 4) << 32;
	return bar;
}
