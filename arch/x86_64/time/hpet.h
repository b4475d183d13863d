/*
 * The HPET's registers, by their offsets. HPET_LEGACY takes the pins of the PIT and the RTC away
 * from them. The kernel only reads the counter, so the pins to which a timer can be routed do not
 * matter.
 *
 * Source: Intel, "IA-PC HPET Specification" 1.0a, 2004-10, 2.3.1, 2.3.4 "General Capabilities",
 * 2.3.8 "Timer n Configuration and Capabilities".
 */
#pragma once

#include <arch/mmio.h>

enum { HPET_CAPS = 0x00, HPET_PERIOD = 0x04, HPET_CONFIG = 0x10, HPET_COUNTER = 0xf0 };
enum { HPET_ENABLE = 1, HPET_LEGACY = 2 };
enum { HPET_TIMER0 = 0x100, HPET_TIMER_BYTES = 0x20, HPET_INTERRUPTS = 1 << 2 };

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

/*
 * Let the counter run, and switch the interrupts of all timers off: firmware's own clock may be one
 * that sends messages past the I/O APICs. Returns the length of a tick in fs; 0: there is no HPET.
 */
static inline u32 hpet_start(volatile void __iomem *hpet)
{
	const u32 caps = mmio_read32(hpet, HPET_CAPS), period = mmio_read32(hpet, HPET_PERIOD);

	if (!hpet_is_there(caps, period))
		return 0;
	for (unsigned timer = 0; timer <= (caps >> 8 & 0x1f); timer++) {
		const unsigned reg = HPET_TIMER0 + timer * HPET_TIMER_BYTES;

		mmio_write32(hpet, reg, mmio_read32(hpet, reg) & ~(u32)HPET_INTERRUPTS);
	}
	mmio_write32(hpet, HPET_CONFIG,
		     (mmio_read32(hpet, HPET_CONFIG) | HPET_ENABLE) & ~(u32)HPET_LEGACY);
	return period;
}
