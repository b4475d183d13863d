/* The I/O APICs and their lines; a line of the first one can raise NMIs. */
#pragma once

#include "arch/x86_64/traps/apic.h"

/* Mask all pins of an I/O APIC until irq_register() opens one. Boot CPU. */
void io_apic_add(phys_t phys, u32 gsi_base);

u32 io_apic_entry(u32 gsi); /* low half of the line's entry, as it is now; 0: no such line */

/* Let line `gsi` raise NMIs on this CPU. False if it cannot be routed. */
bool io_apic_route_nmi(u32 gsi);
void io_apic_mask(u32 gsi); /* ends that; no effect if there is no such line */
