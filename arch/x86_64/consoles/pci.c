/*
 * The search for a PCI serial port; see pci.h.
 *
 * All 256 buses are searched, with one read for each empty slot. Machines have several root buses,
 * and it does not matter here which bridge a bus is behind. The search takes 8192 reads, about 20
 * ms, and is done only if no other port answered or console=pci asks for it.
 *
 * Sources: PCI-SIG, "PCI Code and ID Assignment Specification" 1.12, 2020, class 07h; "PCI Local
 * Bus Specification" 3.0, 2004, 6.1 "Configuration space organization", 6.2.5.1 "Address maps".
 */
#include "arch/x86_64/consoles/pci.h"

#include "arch/x86_64/cpu/io.h"

enum { PCI_ADDRESS = 0xcf8, PCI_DATA = 0xcfc };
enum {
	REG_ID = 0x00,
	REG_COMMAND = 0x04,
	REG_CLASS = 0x08,
	REG_HEADER = 0x0c,
	REG_BAR0 = 0x10,
	REG_BAR1 = 0x14
};
enum { BUSES = 256, DEVICES = 32, FUNCTIONS = 8, CLASS_SERIAL = 0x0700, INTERFACE_16950 = 6 };
enum { COMMAND_IO = 1, COMMAND_MEMORY = 2, BAR_IO = 1, BAR_TYPE = 6, BAR_64BIT = 4 };

#define PCI_ENABLE   0x80000000u
#define MULTI_DEVICE (1u << 23)
#define ABSENT       0xffffffffu

static u32 address_of(const struct pci_uart *at, unsigned reg)
{
	return PCI_ENABLE | (u32)at->bus << 16 | (u32)at->device << 11 | (u32)at->function << 8 |
	       reg;
}

static u32 config_read(const struct pci_uart *at, unsigned reg)
{
	outl(PCI_ADDRESS, address_of(at, reg));
	return inl(PCI_DATA);
}

static void config_write(const struct pci_uart *at, unsigned reg, u32 value)
{
	outl(PCI_ADDRESS, address_of(at, reg));
	outl(PCI_DATA, value);
}

static bool pci_present(void)
{
	outl(PCI_ADDRESS, PCI_ENABLE);
	return inl(PCI_ADDRESS) == PCI_ENABLE;
}

/* True if this is a serial port to which firmware gave an address; sets at->base to the address. */
static bool is_uart(struct pci_uart *at)
{
	const u32 class = config_read(at, REG_CLASS), bar = config_read(at, REG_BAR0);

	if (class >> 16 != CLASS_SERIAL || (class >> 8 & 0xff) > INTERFACE_16950)
		return false;
	at->in_memory = !(bar & BAR_IO);
	at->base = at->in_memory ? bar & ~0xfu : bar & ~3u & 0xffff;
	if (at->in_memory && (bar & BAR_TYPE) == BAR_64BIT)
		at->base |= (u64)config_read(at, REG_BAR1) << 32;
	return at->base != 0;
}

/*
 * Switch the device's decoding on. Writing ones clears status bits in the upper half, so zeros are
 * written there.
 */
static void decode_on(const struct pci_uart *at)
{
	const u32 command = config_read(at, REG_COMMAND) & 0xffff;

	config_write(at, REG_COMMAND, command | (at->in_memory ? COMMAND_MEMORY : COMMAND_IO));
}

static bool search_device(struct pci_uart *at)
{
	for (unsigned function = 0; function < FUNCTIONS; function++) {
		at->function = (u8)function;
		if (config_read(at, REG_ID) == ABSENT) {
			if (function == 0)
				return false;
			continue;
		}
		if (is_uart(at)) {
			decode_on(at);
			return true;
		}
		if (function == 0 && !(config_read(at, REG_HEADER) & MULTI_DEVICE))
			return false;
	}
	return false;
}

bool pci_find_uart(struct pci_uart *out)
{
	if (!pci_present())
		return false;
	for (unsigned slot = 0; slot < BUSES * DEVICES; slot++) {
		*out = (struct pci_uart){.bus = (u8)(slot / DEVICES),
					 .device = (u8)(slot % DEVICES)};
		if (search_device(out))
			return true;
	}
	return false;
}
