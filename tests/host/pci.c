/* The hosted machine has no PCI, unless a case makes some up. */
#include "arch/x86_64/cpu/io.h"
#include "tests/host/host.h"

enum { PORT_ADDRESS = 0xcf8 };

u32 (*host_pci)(u32 place, unsigned reg);
static u32 address;

u32 inl(u16 port)
{
	if (!host_pci)
		return ~0U;
	return port == PORT_ADDRESS ? address : host_pci(address >> 8 & 0xffff, address & 0xff);
}

void outl(u16 port, u32 value)
{
	if (port == PORT_ADDRESS)
		address = value;
}
