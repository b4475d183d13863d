/*
 * An APIC for the kernel's timers (arch/x86_64/time/timer.c), whose tick is a nanosecond of the
 * explorer's clock. When a timer fires depends on the schedule, since each point takes time.
 */
#include "arch/x86_64/time/timer.h"
#include "arch/x86_64/traps/apic.h"
#include "tests/host/explore/explore.h"

static u64 fires_at[EXPLORE_CPUS_MAX]; /* by the clock; 0: never */

enum apic_mode apic_mode(void)
{
	return APIC_XAPIC;
}

void apic_timer_once(u32 ticks)
{
	fires_at[explore_here] = ticks ? explore_now + ticks : 0;
}

u32 apic_timer_left(void)
{
	return (u32)saturating_sub(fires_at[explore_here], explore_now);
}

void timers_fire(void)
{
	for (cpu_t i = 0; i < host_config.cpus; i++) {
		if (!fires_at[i] || fires_at[i] > explore_now)
			continue;
		fires_at[i] = 0;
		host_cpus[i].pending |= HOST_PENDING_TIMER;
	}
}

u64 timers_earliest(void)
{
	u64 first = 0;

	for (cpu_t i = 0; i < host_config.cpus; i++)
		if (fires_at[i] && (!first || fires_at[i] < first))
			first = fires_at[i];
	return first;
}
