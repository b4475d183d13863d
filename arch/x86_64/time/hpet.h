/*
 * The HPET's registers, by their offsets. HPET_LEGACY takes the pins of the PIT and the RTC away
 * from them.
 *
 * Source: Intel, "IA-PC HPET Specification" 1.0a, 2004-10, 2.3.1, 2.3.4 "General Capabilities".
 */
#pragma once

#include "kernel/lib/types.h"

enum { HPET_CAPS = 0x00, HPET_PERIOD = 0x04, HPET_CONFIG = 0x10, HPET_COUNTER = 0xf0 };
enum { HPET_ENABLE = 1, HPET_LEGACY = 2 };

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
