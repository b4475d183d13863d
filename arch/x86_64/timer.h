/* The local APIC's timer: what ipi.c and cpu_nap() need of timer.c. */
#pragma once

#include "kernel/types.h"

/* Its interrupt came and is acknowledged. Interrupts off. */
void timer_interrupt(void);

/* Have an interrupt after so many ticks, or earlier. Interrupts off. */
void timer_nap(u32 ticks);
