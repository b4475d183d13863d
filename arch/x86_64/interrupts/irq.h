/* The I/O APICs and their lines. */
#pragma once

#include "arch/x86_64/traps/apic.h"

/* Mask all pins of an I/O APIC. Boot CPU. */
void io_apic_add(phys_t phys, u32 gsi_base);

/*
 * Set the low half of a line's entry, with this CPU as the destination: PIN_MODE_NMI lets the line
 * raise NMIs here, PIN_MASKED ends that. False if there is no such line, or it cannot be routed.
 */
enum { PIN_MODE_NMI = 4 << 8, PIN_MASKED = 1 << 16 };
bool io_apic_set(u32 gsi, u32 low);
