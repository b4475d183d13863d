/* Ports of the hosted machine: those of PCI (tests/host/pci.c). */
#pragma once

#include "kernel/lib/types.h"

u32 inl(u16 port);
void outl(u16 port, u32 value);
