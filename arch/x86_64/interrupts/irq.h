/* The I/O APICs and their lines; a line of the first one can raise NMIs. */
#pragma once

#include "arch/x86_64/traps/apic.h"

/* Mask all pins of an I/O APIC until irq_register() opens one. Boot CPU. */
void io_apic_add(phys_t phys, u32 gsi_base);

u32 io_apic_entry(u32 gsi); /* low half of the line's entry, as it is now; 0: no such line */

/*
 * Set the low half of a line's entry, with this CPU as the destination: PIN_MODE_NMI lets the line
 * raise NMIs here, PIN_MASKED ends that. False if there is no such line, or it cannot be routed.
 */
enum { PIN_MODE_NMI = 4 << 8, PIN_MASKED = 1 << 16 };
bool io_apic_set(u32 gsi, u32 low);
