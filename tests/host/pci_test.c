/* PCI configuration space, read from devices that are made up here (tests/host/pci.c). */
#include <arch/pci.h>

#include "tests/host/host.h"
#include "tests/kernel/test.h"

enum { MULTI = 1 << 23, BRIDGE = 1 << 16, LAST_BUS = 255 << 8 };

static const struct {
	u32 place, header, buses;
} functions[] = {
	{0x0000, MULTI, 0}, {0x0007, MULTI, 0}, {0x0008, 0, 0},   {0x00f8, BRIDGE, 0x00020100},
	{0x0108, 0, 0},     {0x02f8, 0, 0},     {LAST_BUS, 0, 0}, {LAST_BUS + 0xf8, 0, 0}};

static u32 answer(u32 place, unsigned reg)
{
	if (place >> 3 == 1)
		place = 8; /* which does not look at the number of its function */
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		if (functions[i].place == place)
			return reg == PCI_HEADER ? functions[i].header : functions[i].buses;
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
