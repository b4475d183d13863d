/* The choice of an HPET timer; see hpet.h. */
#include "arch/x86_64/time/hpet.h"

enum { CAN_REPEAT = 1 << 4, ISA_PINS = 16, ROUTES = 32 };

int hpet_tick_choose(const struct hpet_timer *timers, unsigned count, u32 pins, u32 *route)
{
	const u32 usable = pins >= ROUTES ? ~0U : (1U << pins) - 1;
	const u32 above_isa = usable & ~((1U << ISA_PINS) - 1);

	for (unsigned n = 0; n < count; n++) {
		const u32 routes = timers[n].routes & above_isa;

		if (!(timers[n].config & CAN_REPEAT) || !routes)
			continue;
		*route = ROUTES - 1 - (u32)__builtin_clz(routes);
		return (int)n;
	}
	return -ENOENT;
}
