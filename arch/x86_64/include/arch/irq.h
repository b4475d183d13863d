/*
 * Interrupts of devices and timers, for programs.
 *
 * Handlers run in interrupt context, interrupts off, on the kernel's stack of the CPU that takes it: short, no lock that is ever
 * held with interrupts on, no allocation, no vector registers. The interrupt is acknowledged when the handler returns.
 */
#pragma once

#include "kernel/types.h"

typedef void irq_fn(void *arg);

/* Put before a handler in a program that is compiled with vector registers: the compiler then leaves those of the interrupted alone. */
#define IRQ_HANDLER __attribute__((target("general-regs-only")))

enum irq_trigger { IRQ_EDGE, IRQ_LEVEL }; /* edge: rising, as ISA devices; level: low, as PCI pins */

/*
 * Call fn(arg) on the calling CPU whenever line `gsi` is raised (the number ACPI gives it; a PC's ISA devices: theirs, but the
 * timer's, 0, is on 2). 0; -EBUSY if the line has a handler or raises the watchdog's NMIs; -ENODEV if no interrupt controller has
 * that line, or none can address this CPU; -ENOSPC if no vector is left. Any CPUs at once. Context: ordinary (mm/mm.h).
 */
int irq_register(u32 gsi, enum irq_trigger trigger, irq_fn *fn, void *arg);

/*
 * Undo one irq_register(), from any CPU. No further calls once this returns: the line is masked, and a call in progress on
 * another CPU has ended; until then the line stays taken. Nothing happens for a line without one. Context: ordinary.
 */
void irq_unregister(u32 gsi);

/*
 * Call fn(arg) once on this CPU, `ns` from now or a little later. One per CPU: -EBUSY if it has one that has not come. -ENODEV without a
 * timer. Interrupts on or off (it comes when they are on). Context: handler.
 */
int timer_once(u64 ns, irq_fn *fn, void *arg);
