/* Interprocessor interrupts, arch-internal part; the rest is <arch/cpu.h>. */
#pragma once

/* Handlers for our vectors. Boot CPU, once, before interrupts are enabled. */
void ipi_init(void);
