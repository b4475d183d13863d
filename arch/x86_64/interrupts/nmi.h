/* Non-maskable interrupts: their sources and purposes. */
#pragma once

#include "kernel/lib/types.h"

/* Boot CPU, before apic_init_cpu() opens the pin on which the board's NMIs come. */
void nmi_init(void);

/*
 * Decode port 61h's status of the board, ignoring bits that are `stuck`. Returns the error in
 * words, or NULL if there is none. Pure.
 */
const char *nmi_board_says(u8 status, u8 stuck);
