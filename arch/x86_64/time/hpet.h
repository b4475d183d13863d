/*
 * Facts from the HPET's registers. Pure.
 *
 * Source: Intel, "IA-PC HPET Specification" 1.0a, 2004-10, 2.3.4 "General Capabilities", 2.3.8
 * "Timer N Configuration and Capabilities".
 */
#pragma once

#include "kernel/lib/types.h"

enum { HPET_TIMERS_MAX = 32 };

/* Nanoseconds a tick: 100 at most. */
#define HPET_PERIOD_MAX_FS 100000000U

/*
 * Is there an HPET that counts at a possible rate? Registers that no device decodes read as all
 * ones.
 */
static inline bool hpet_is_there(u32 caps, u32 period_fs)
{
	return caps != ~0U && period_fs > 0 && period_fs <= HPET_PERIOD_MAX_FS;
}

/* A timer's configuration, and the pins of the first I/O APIC that it can reach, as bits. */
struct hpet_timer {
	u32 config, routes;
};

/*
 * The timer that shall tick for the watchdog: one that can repeat, at the highest pin below `pins`
 * that it reaches. Returns its number and sets *route, or -ENOENT.
 *
 * Pins 0 to 15 are never taken. ISA devices have them, such as the PIT on 0 or 2 and the RTC on 8,
 * and each of their interrupts would be an NMI.
 */
int hpet_tick_choose(const struct hpet_timer *timers, unsigned count, u32 pins, u32 *route);
