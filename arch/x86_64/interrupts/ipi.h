/* Interprocessor interrupts, arch-internal part; the rest is <arch/cpu.h>. */
#pragma once

/* Install the handlers of the kernel's vectors. Boot CPU, once, before interrupts are enabled. */
void ipi_init(void);
