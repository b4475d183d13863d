/* Non-maskable interrupts: who sends them, and what for. */
#pragma once

#include "kernel/types.h"

/* Boot CPU, once CPUs can be interrupted. */
void nmi_init(void);

/* From now on NMIs stop the CPU they reach; `nmi_stopped()` counts. For panics. */
void nmi_stop_all(void);
u32 nmi_stopped(void);

/* What port 61h says about the board, in words, but for bits that are `stuck`; NULL: nothing. Pure. */
const char *nmi_board_says(u8 status, u8 stuck);

/*
 * Let the HPET call watchdog_tick() on this CPU once a second, by NMI through the first I/O APIC. False, with the reason
 * on the log, if this machine cannot.
 */
bool nmi_tick_start(volatile void __iomem *hpet);
