/* Devices that firmware left at work. */
#pragma once

#include "kernel/lib/types.h"

/*
 * Forbid PCI devices to write to memory, and stop the chipset's watchdog. Screens and USB stay
 * as they are: firmware may still draw and read keys with them, in memory that it keeps. So do
 * bridges, those to memory and ISA included, which often cannot be stopped, and I/O APICs, which
 * send interrupts as masters. Boot CPU, before RAM is used; where PCI has no ports, as soon as MCFG
 * is read.
 */
void leftovers_stop(void);

/* Forbid it to one function. True if it could write; its other switches stay as they are. */
struct pci_place;
bool leftover_stop(const struct pci_place *at);

/* Stop the watchdog of Intel's chipsets (TCO). False if there is none that runs. */
bool tco_stop(void);

/* The port where its registers begin; 0: none. */
u16 tco_base(void);
enum { TCO_RELOAD = 0, TCO_CONTROL1 = 8, TCO_TIME = 18, TCO_HALT = 1 << 11 };
