/* The local APIC's timer: the interface of timer.c to ipi.c and cpu_nap(). */
#pragma once

#include "kernel/lib/types.h"

/* Handle the timer's interrupt, already acknowledged. Interrupts off. */
void timer_interrupt(void);

/* Request an interrupt after this many ticks or earlier. Interrupts off. */
void timer_interrupt_within(u32 ticks);
