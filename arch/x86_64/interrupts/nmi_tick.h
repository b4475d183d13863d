/*
 * The watchdog's tick: an NMI on the boot CPU once a second.
 *
 *   HPET   a timer that repeats, at a pin of the first I/O APIC above those of ISA (time/hpet.h)
 *   RTC    its update interrupt at pin 8, where no timer of an HPET can do it
 *
 * A source is used only if its first tick has come while other CPUs started. With neither, the log
 * says "watchdog: off".
 *
 * Source: Motorola, "MC146818A Real-Time Clock plus RAM", 1984, registers A, B and C.
 */
#pragma once

#include "kernel/lib/types.h"

/*
 * Start the first source that this machine may have, if the watchdog is wanted. `hpet`: mapped
 * registers or NULL. Boot CPU, after apic_init_cpu().
 */
void nmi_tick_start(volatile void __iomem *hpet);

/* End the ticks, if there are any. Boot CPU. */
void nmi_tick_stop(void);

/*
 * Wait for the first tick, for a bounded time. A source that does not tick is switched off, and the
 * next one gets its chance. Boot CPU, once the clock's rate is settled.
 */
void nmi_tick_confirm(void);

/*
 * In an NMI on the boot CPU: was it a tick? Acknowledges a tick. The RTC tells, unless its word was
 * read for an earlier NMI or by nmi_tick_acknowledge(): then the NMI perhaps was one. An HPET's tick is
 * an NMI with no other reason that comes half a second after the one before or later. Under a
 * hypervisor, which may deliver a tick late and the next one in time, an earlier one may be, too.
 * `answered`: the NMI has a reason already, cpu_where().
 */
enum nmi_tick { NMI_NO_TICK, NMI_TICK, NMI_PERHAPS_TICK };
enum nmi_tick nmi_tick_take(bool answered);

/*
 * A tick that another handler took, such as a test's, is acknowledged, and the next one can come.
 * Boot CPU.
 */
void nmi_tick_acknowledge(void);

/* Ticks since the last start. Any context. */
u32 nmi_ticks(void);

/* Does the watchdog tick on this machine? */
bool nmi_tick_is_on(void);
