/*
 * The timer of a CPU, for programs.
 *
 * Handlers run in interrupt context, with interrupts off, on the kernel stack of the CPU that takes
 * the interrupt. They must be short, take no lock that is ever held with interrupts on, allocate
 * nothing and use no vector registers. The interrupt is acknowledged when the handler returns.
 */
#pragma once

#include "kernel/lib/types.h"

typedef void irq_fn(void *arg);

/*
 * Put before a handler in a program that is compiled with vector registers. The compiler then
 * leaves the vector registers of the interrupted code alone.
 */
#define IRQ_HANDLER __attribute__((target("general-regs-only")))

/*
 * Call fn(arg) once on this CPU, `ns` from now or a little later. There is one timer per CPU:
 * -EBUSY if an earlier one has not fired yet. -ENODEV without a timer. Interrupts may be on or off;
 * the timer fires when they are on.
 * Context: handler.
 */
int timer_once(u64 ns, irq_fn *fn, void *arg);

/* Forget this CPU's timer_once(), if it has not fired. Context: handler. */
void timer_cancel(void);
