/* PCI configuration space, read from devices that are made up here (tests/host/pci.c). */
#include <arch/pci.h>

#include "tests/host/host.h"
#include "tests/kernel/test.h"

enum { MULTI = 1 << 23, BRIDGE = 1 << 16, BUSES = 0x18, BAR_END = 0x28, LAST_BUS = 255 << 8 };

static const struct {
	u32 place, header, buses;
} functions[] = {
	{0x0000, MULTI, 0}, {0x0007, MULTI, 0}, {0x0008, 0, 0},   {0x00f8, BRIDGE, 0x00020100},
	{0x0108, 0, 0},     {0x02f8, 0, 0},     {LAST_BUS, 0, 0}, {LAST_BUS + 0xf8, 0, 0}};

static const u32 bars[] = {0xc001, 0x1234500c, 0x50, 0xabcde000, 0, 0xfffff00c};

static u32 answer(u32 place, unsigned reg)
{
	if (place >> 3 == 1)
		place = 8; /* which does not look at the number of its function */
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		if (functions[i].place != place)
			continue;
		if (reg == PCI_HEADER)
			return functions[i].header;
		if (functions[i].buses && reg == BUSES)
			return functions[i].buses;
		return reg >= PCI_BAR0 && reg < BAR_END ? bars[(reg - PCI_BAR0) / 4] : place;
	}
	return ~0U;
}

/* The bus behind a bridge has devices in any slot, and another one is found by its first. */
TEST(host_pci, each_function_of_each_bus_is_found_once)
{
	struct pci_place at = PCI_FIRST;
	size_t found = 0;

	host_pci = answer;
	for (; found < ARRAY_LEN(functions) && pci_next(&at); at.next++)
		EXPECT_EQ(at.next, functions[found++].place);
	EXPECT_EQ(found, ARRAY_LEN(functions));
	EXPECT(!pci_next(&at));
	host_pci = NULL;
}

TEST(host_pci, an_address_has_one_register_or_two)
{
	static const struct pci_bar want[] = {
		{false, 0xc000}, {true, 0x5012345000}, {true, 0x50}, {true, 0xabcde000},
		{true, 0},       {true, 0xfffff000},   {true, 0}};
	const struct pci_place at = {.next = 8};

	host_pci = answer;
	for (unsigned i = 0; i < ARRAY_LEN(want); i++) {
		const struct pci_bar bar = pci_bar(&at, i);

		EXPECT(bar.in_memory == want[i].in_memory && bar.base == want[i].base);
	}
	host_pci = NULL;
}
