/*
 * The watchdog's tick: an NMI on the boot CPU once a second, which the update interrupt of the RTC
 * raises at pin 8 of the first I/O APIC.
 *
 * The RTC is used only if its first tick has come while other CPUs started. Otherwise the last CPU
 * watches by its timer, an ordinary interrupt: it sees hangs of all CPUs, but not of itself with
 * interrupts off.
 *
 * Source: Motorola, "MC146818A Real-Time Clock plus RAM", 1984, registers A, B and C.
 */
#pragma once

#include "kernel/lib/types.h"

/* Start the RTC, if the watchdog is wanted. Boot CPU, after apic_init_cpu(). */
void nmi_tick_start(void);

/*
 * Wait for the first tick, for a bounded time. An RTC that does not tick is switched off. Boot CPU,
 * once the clock's rate is settled.
 */
void nmi_tick_confirm(void);

/*
 * Where the RTC does not tick, begin to watch by timer, and say which CPU does. Boot CPU, once all
 * CPUs take interrupts.
 */
void nmi_tick_replace(void);

/*
 * In an NMI on the boot CPU: was it a tick? Acknowledges a tick, so that the next one can come.
 * Also called when another handler, such as a test's, has taken ticks.
 */
enum nmi_tick { NMI_NO_TICK, NMI_TICK, NMI_PERHAPS_TICK };
enum nmi_tick nmi_tick_take(void);

/* Does the RTC tick on this machine? Written by the boot CPU. */
extern bool nmi_tick_is_on;
