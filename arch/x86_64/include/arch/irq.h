/*
 * Interrupts of devices and timers, for programs.
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

/* edge: rising, as for ISA devices; level: low, as for PCI pins */
enum irq_trigger { IRQ_EDGE, IRQ_LEVEL };

/*
 * Call fn(arg) on the calling CPU whenever line `gsi` is raised. `gsi` is ACPI's number for the
 * line; on a PC it equals the ISA number, except that the timer (ISA 0) is on 2. Any number of CPUs
 * may call this at once. Context: ordinary (mm/mm.h).
 *
 * Returns 0; -EBUSY if the line has a handler or raises the watchdog's NMIs; -ENODEV if no
 * interrupt controller has that line or none can address this CPU; -ENOSPC if no vector is left.
 */
int irq_register(u32 gsi, enum irq_trigger trigger, irq_fn *fn, void *arg);

/*
 * Undo one irq_register(), from any CPU. Once this returns the handler is not called again: the
 * line is masked, and a call in progress on another CPU has ended. Until then the line stays taken.
 * Does nothing for a line without a handler. Context: ordinary.
 */
void irq_unregister(u32 gsi);

/*
 * Call fn(arg) once on this CPU, `ns` from now or a little later. There is one timer per CPU:
 * -EBUSY if an earlier one has not fired yet. -ENODEV without a timer. Interrupts may be on or off;
 * the timer fires when they are on.
 * Context: handler.
 */
int timer_once(u64 ns, irq_fn *fn, void *arg);

/* Forget this CPU's timer_once(), if it has not fired. Context: handler. */
void timer_cancel(void);
