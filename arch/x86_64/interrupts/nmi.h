/* Non-maskable interrupts: their sources and purposes. */
#pragma once

#include "kernel/lib/types.h"

/* Boot CPU, before apic_init_cpu() opens the pin on which the board's NMIs come. */
void nmi_init(void);

/*
 * From now on an NMI stops the CPU that receives it; nmi_stopped() returns how many have stopped.
 * For panics.
 */
void nmi_stop_all(void);
u32 nmi_stopped(void);

/*
 * Decode port 61h's status of the board, ignoring bits that are `stuck`. Returns the error in
 * words, or NULL if there is none. Pure.
 */
const char *nmi_board_says(u8 status, u8 stuck);
